//! Operations on names: rename, removal, and reading directories.

use crate::nodes::{Content, Nodes};
use apus_fuse::Errno;
use apus_fuse::codec::{Directory, Readdir, RenameFlags};

pub(crate) fn remove(
    nodes: &mut Nodes,
    parent: u64,
    name: &[u8],
    directory: bool,
) -> Result<(), Errno> {
    let node = nodes.child(parent, name)?;
    match (nodes.is_empty_directory(node), directory) {
        (Ok(true), true) | (Err(_), false) => {}
        (Ok(false), true) => return Err(Errno::NOTEMPTY),
        (Ok(_), false) => return Err(Errno::ISDIR),
        (Err(error), true) => return Err(error),
    }
    nodes.unlink(parent, name).map(|_| ())
}

pub(crate) fn rename(
    nodes: &mut Nodes,
    from: (u64, &[u8]),
    to: (u64, &[u8]),
    flags: RenameFlags,
) -> Result<(), Errno> {
    let node = nodes.child(from.0, from.1)?;
    let target = nodes.child(to.0, to.1);
    if flags == RenameFlags::EXCHANGE {
        let target = target?;
        nodes.get_mut(node)?.attributes.links += 1; // Keeps both while they have no name.
        nodes.get_mut(target)?.attributes.links += 1;
        nodes.unlink(from.0, from.1)?;
        nodes.unlink(to.0, to.1)?;
        nodes.link(from.0, from.1, target)?;
        nodes.link(to.0, to.1, node)?;
        nodes.get_mut(node)?.attributes.links -= 1;
        nodes.get_mut(target)?.attributes.links -= 1;
        return Ok(());
    }
    if !(flags - RenameFlags::NOREPLACE).is_empty() {
        return Err(Errno::INVAL);
    }
    if let Ok(target) = target {
        if flags.contains(RenameFlags::NOREPLACE) {
            return Err(Errno::EXIST);
        }
        if target == node {
            return Ok(());
        }
        let directory = nodes.is_empty_directory(node).is_ok();
        remove(nodes, to.0, to.1, directory)?;
    }
    nodes.get_mut(node)?.attributes.links += 1;
    nodes.unlink(from.0, from.1)?;
    nodes.link(to.0, to.1, node)?;
    nodes.get_mut(node)?.attributes.links -= 1;
    Ok(())
}

pub(crate) fn read(nodes: &mut Nodes, node: u64, wanted: &Readdir) -> Result<Directory, Errno> {
    let mut directory = Directory::new(wanted.size);
    let Content::Directory { by_cookie, .. } = &nodes.get(node)?.content else {
        return Err(Errno::NOTDIR);
    };
    let mut found = Vec::new();
    let mut room = wanted.size as usize;
    for (cookie, (name, child)) in by_cookie.range(wanted.offset + 1..) {
        let Some(left) = room.checked_sub(24 + name.len()) else { break };
        room = left;
        found.push((*cookie, name.clone(), *child));
    }
    for (cookie, name, child) in found {
        let added = if wanted.plus {
            let entry = nodes.entry(child)?;
            let added = directory.push_plus(&entry, cookie, &name);
            if added.is_err() {
                nodes.forget(child, 1);
            }
            added
        } else {
            let mode = nodes.get(child)?.attributes.mode;
            directory.push(child, cookie, mode, &name)
        };
        if added.is_err() {
            break;
        }
    }
    Ok(directory)
}
