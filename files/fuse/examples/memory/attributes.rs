//! SETATTR and extended attributes.

use crate::nodes::{Content, Node, Nodes, now};
use apus_fuse::Errno;
use apus_fuse::codec::{Attributes, SetTime, Setattr};

/// Set-user-id and set-group-id.
const SUID_SGID: u32 = 0o6000;

pub(crate) fn set(nodes: &mut Nodes, node: u64, change: &Setattr) -> Result<Attributes, Errno> {
    let node = nodes.get_mut(node)?;
    if let Some(size) = change.size {
        resize(node, size)?;
    }
    let attributes = &mut node.attributes;
    if change.kill_suid_gid {
        attributes.mode &= !SUID_SGID;
    }
    if let Some(mode) = change.mode {
        attributes.mode = (attributes.mode & !0o7777) | (mode & 0o7777);
    }
    attributes.uid = change.uid.unwrap_or(attributes.uid);
    attributes.gid = change.gid.unwrap_or(attributes.gid);
    let time = |set| match set {
        SetTime::Now => now(),
        SetTime::To(time) => time,
    };
    attributes.atime = change.atime.map_or(attributes.atime, time);
    attributes.mtime = change.mtime.map_or(attributes.mtime, time);
    attributes.ctime = now();
    Ok(*attributes)
}

pub(crate) fn resize(node: &mut Node, size: u64) -> Result<(), Errno> {
    let Content::File(data) = &mut node.content else { return Err(Errno::INVAL) };
    let length = usize::try_from(size).map_err(|_| Errno::FBIG)?;
    let more = length.saturating_sub(data.len());
    data.try_reserve_exact(more).map_err(|_| Errno::NOSPC)?;
    data.resize(length, 0);
    node.attributes.size = size;
    node.attributes.blocks = size.div_ceil(512);
    node.attributes.mtime = now();
    Ok(())
}

pub(crate) fn set_xattr(
    node: &mut Node,
    name: &[u8],
    value: &[u8],
    flags: u32,
) -> Result<(), Errno> {
    match (flags, node.xattrs.contains_key(name)) {
        (1, true) => return Err(Errno::EXIST),
        (2, false) => return Err(Errno::NODATA),
        _ => {}
    }
    node.xattrs.insert(name.to_vec(), value.to_vec());
    Ok(())
}

/// The names, each with a NUL.
pub(crate) fn xattr_names(node: &Node) -> Vec<u8> {
    let mut names = Vec::new();
    for name in node.xattrs.keys() {
        names.extend_from_slice(name);
        names.push(0);
    }
    names
}
