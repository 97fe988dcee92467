//! Serves requests from memory.

use crate::attributes::{resize, set, set_xattr, xattr_names};
use crate::locks::{Locks, UNLOCK, Waiting};
use crate::names;
use crate::nodes::{Content, Nodes};
use apus_fuse::codec::{
    Create, Entry, FileLock, OpenFlags, Opened, Operation, Reply, Request, Statfs, Write,
};
use apus_fuse::{Errno, ReadError, ReadOutcome, RequestBuffer, Session};

/// A file whose reads are answered only by an interrupt. It is opened for direct IO: read-ahead
/// into the page cache is a request of the kernel, which is not interrupted when the reader is
/// killed.
const STUCK: &[u8] = b"stuck";

const O_TRUNC: u32 = 0o1000;
const O_APPEND: u32 = 0o2000;

/// The file system.
#[derive(Default)]
pub(crate) struct MemoryServer {
    pub(crate) nodes: Nodes,
    locks: Locks,
    /// Nodes named [`STUCK`] when they were created.
    stuck: Vec<u64>,
    /// Interrupts received.
    pub(crate) interrupts: u64,
}

/// Immediate answer; `None` if the answer follows later or never.
type Answer = Result<Option<()>, Errno>;

impl MemoryServer {
    /// Serves one request; false if no request is pending.
    pub(crate) fn step(
        &mut self,
        session: &Session,
        buffer: &mut RequestBuffer,
    ) -> Result<bool, ReadError> {
        match session.try_read(buffer)? {
            ReadOutcome::Idle => return Ok(false),
            ReadOutcome::Handled => {}
            ReadOutcome::Request(request) => {
                if let Err(error) = self.serve(session, &request) {
                    let _ = session.fail(request.header.unique, error);
                }
                while let Some(unique) = self.locks.take_ready() {
                    let _ = session.reply(unique, &Reply::Empty);
                }
            }
        }
        Ok(true)
    }

    fn serve(&mut self, session: &Session, request: &Request<'_>) -> Answer {
        let (header, nodes) = (&request.header, &mut self.nodes);
        let node = header.node;
        // A reply that is sent too late, after an interrupt, is not an error of this file system.
        let reply = |reply: &Reply<'_>| {
            let _ = session.reply(header.unique, reply);
            Ok(Some(()))
        };
        let timeout = nodes.timeout;
        match request.operation {
            Operation::Lookup { name } => match nodes.child(node, name) {
                Ok(child) => reply(&Reply::Entry(&nodes.entry(child)?)),
                Err(Errno::NOENT) => reply(&Reply::Entry(&Entry::absent(timeout))),
                Err(error) => Err(error),
            },
            Operation::Forget { count } => {
                nodes.forget(node, count);
                Ok(None)
            }
            Operation::BatchForget(list) => {
                list.iter().for_each(|(node, count)| nodes.forget(node, count));
                Ok(None)
            }
            Operation::Getattr { .. } => {
                reply(&Reply::Attributes(&nodes.get(node)?.attributes, timeout))
            }
            Operation::Setattr(change) => {
                reply(&Reply::Attributes(&set(nodes, node, &change)?, timeout))
            }
            Operation::Readlink => match &nodes.get(node)?.content {
                Content::Link(target) => reply(&Reply::Data(target)),
                _ => Err(Errno::INVAL),
            },
            Operation::Symlink { name, target } => {
                let content = Content::Link(target.to_vec());
                let entry = self.add(request, name, 0o120_777, content)?;
                reply(&Reply::Entry(&entry))
            }
            Operation::Mknod { name, mode, .. } => {
                let is_file = mode & 0o170_000 == 0o100_000;
                let content = if is_file { Content::File(Vec::new()) } else { Content::Special };
                reply(&Reply::Entry(&self.add(request, name, mode, content)?))
            }
            Operation::Mkdir { name, mode, .. } => {
                let mode = mode & 0o7777 | 0o40_000;
                reply(&Reply::Entry(&self.add(request, name, mode, Content::directory())?))
            }
            Operation::Create(Create { name, mode, .. }) => {
                let entry = self.add(request, name, mode, Content::File(Vec::new()))?;
                if name == STUCK {
                    self.stuck.push(entry.node);
                }
                reply(&Reply::Created(&entry, Opened { handle: 0, flags: OpenFlags::KEEP_CACHE }))
            }
            Operation::Unlink { name } => {
                names::remove(nodes, node, name, false)?;
                reply(&Reply::Empty)
            }
            Operation::Rmdir { name } => {
                names::remove(nodes, node, name, true)?;
                reply(&Reply::Empty)
            }
            Operation::Rename { name, new_parent, new_name, flags } => {
                names::rename(nodes, (node, name), (new_parent, new_name), flags)?;
                reply(&Reply::Empty)
            }
            Operation::Link { existing, new_name } => {
                nodes.link(node, new_name, existing)?;
                reply(&Reply::Entry(&nodes.entry(existing)?))
            }
            Operation::Open { flags, .. } => {
                if flags & O_TRUNC != 0 {
                    resize(nodes.get_mut(node)?, 0)?;
                }
                let direct = self.stuck.contains(&node);
                let flags = if direct { OpenFlags::DIRECT_IO } else { OpenFlags::KEEP_CACHE };
                reply(&Reply::Opened(Opened { handle: 0, flags }))
            }
            Operation::Opendir { .. } => reply(&Reply::Opened(Opened::default())),
            Operation::Readdir(wanted) => {
                reply(&Reply::Data(names::read(nodes, node, &wanted)?.bytes()))
            }
            Operation::Read(_) if self.stuck.contains(&node) => Ok(None),
            Operation::Read(read) => match &nodes.get(node)?.content {
                Content::File(data) => {
                    let start = data.len().min(read.offset as usize);
                    let end = data.len().min(start + read.size as usize);
                    reply(&Reply::Data(&data[start..end]))
                }
                _ => Err(Errno::ISDIR),
            },
            Operation::Write(write) => reply(&Reply::Written(store(nodes, node, &write)?)),
            Operation::Fallocate { offset, length, mode, .. } => {
                let (file, end) = (nodes.get_mut(node)?, offset.saturating_add(length));
                match mode {
                    0 if end > file.attributes.size => resize(file, end)?,
                    0 | 1 => {}
                    _ => return Err(Errno::OPNOTSUPP),
                }
                reply(&Reply::Empty)
            }
            Operation::Statfs => {
                let (free, files) = (1 << 20, nodes.len() as u64);
                let totals = Statfs {
                    blocks: 1 << 21,
                    free_blocks: free,
                    available_blocks: free,
                    files,
                    free_files: free,
                    block_size: 4096,
                    max_name: 255,
                    fragment_size: 4096,
                };
                reply(&Reply::Statfs(&totals))
            }
            Operation::Setxattr { name, value, flags, .. } => {
                set_xattr(nodes.get_mut(node)?, name, value, flags)?;
                reply(&Reply::Empty)
            }
            Operation::Getxattr { name, size } => {
                let value = nodes.get(node)?.xattrs.get(name).ok_or(Errno::NODATA)?;
                reply(&sized(value, size)?)
            }
            Operation::Listxattr { size } => reply(&sized(&xattr_names(nodes.get(node)?), size)?),
            Operation::Removexattr { name } => {
                nodes.get_mut(node)?.xattrs.remove(name).ok_or(Errno::NODATA)?;
                reply(&Reply::Empty)
            }
            Operation::Getlk(wanted) => {
                let free = FileLock { kind: UNLOCK, ..wanted.lock };
                reply(&Reply::Lock(self.locks.conflict(node, &wanted).unwrap_or(free)))
            }
            Operation::Setlk { lock, wait } => {
                if self.locks.set(node, &lock) {
                    return reply(&Reply::Empty);
                }
                if !wait {
                    return Err(Errno::AGAIN);
                }
                self.locks.waiting.push(Waiting { unique: header.unique, node, lock });
                Ok(None)
            }
            Operation::Flush { lock_owner, .. } => {
                self.locks.release(node, lock_owner, false);
                reply(&Reply::Empty)
            }
            Operation::Release(release) => {
                self.locks.release(node, release.lock_owner, true);
                reply(&Reply::Empty)
            }
            Operation::Interrupt { unique } => {
                self.interrupts += 1;
                self.locks.waiting.retain(|waiting| waiting.unique != unique);
                let _ = session.fail(unique, Errno::INTR);
                Ok(None)
            }
            Operation::Releasedir(_)
            | Operation::Fsync { .. }
            | Operation::Fsyncdir { .. }
            | Operation::Access { .. }
            | Operation::Destroy => reply(&Reply::Empty),
            Operation::Ioctl(_) => Err(Errno::NOTTY),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Creates a node under a name.
    fn add(
        &mut self,
        request: &Request<'_>,
        name: &[u8],
        mode: u32,
        content: Content,
    ) -> Result<Entry, Errno> {
        let header = &request.header;
        if self.nodes.child(header.node, name).is_ok() {
            return Err(Errno::EXIST);
        }
        let node = self.nodes.create(mode, header.uid, header.gid, content);
        if let Err(error) = self.nodes.link(header.node, name, node) {
            self.nodes.forget(node, 0);
            return Err(error);
        }
        self.nodes.entry(node)
    }
}

/// Writes, at the end of the file if it is open for appending.
fn store(nodes: &mut Nodes, node: u64, write: &Write<'_>) -> Result<u32, Errno> {
    let node = nodes.get_mut(node)?;
    let size = node.attributes.size;
    let offset = if write.flags & O_APPEND != 0 { size } else { write.offset };
    let end = offset.checked_add(write.data.len() as u64).ok_or(Errno::FBIG)?;
    resize(node, end.max(size))?;
    let Content::File(data) = &mut node.content else { return Err(Errno::INVAL) };
    data[offset as usize..end as usize].copy_from_slice(write.data);
    Ok(write.data.len() as u32)
}

/// The reply to a question for a value: the value, or its size.
fn sized(value: &[u8], room: u32) -> Result<Reply<'_>, Errno> {
    match room as usize {
        0 => Ok(Reply::XattrSize(value.len() as u32)),
        room if room < value.len() => Err(Errno::RANGE),
        _ => Ok(Reply::Data(value)),
    }
}
