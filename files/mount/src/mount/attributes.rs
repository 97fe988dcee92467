//! Attributes, times and errors in the terms of the core and of the kernel.

use apus_fs_core::client::NodeEntry;
use apus_fs_core::wire;
use apus_fuse::Errno;
use apus_fuse::codec::{Attributes, Entry, Statfs, Timestamp};

/// Preferred length of reads and writes. Chosen by us: C libraries allocate a buffer of this size
/// for each open file, and programs that copy allocate larger ones themselves.
const BLOCK_SIZE: u32 = 4096;

/// Longest name in bytes.
const MAX_NAME: u32 = wire::limits::MAX_NAME as u32;

pub(super) const S_IFMT: u32 = 0o170_000;
pub(super) const S_IFREG: u32 = 0o100_000;
const KINDS: [(wire::NodeKind, u32); 7] = [
    (wire::NodeKind::File, S_IFREG),
    (wire::NodeKind::Directory, 0o040_000),
    (wire::NodeKind::Symlink, 0o120_000),
    (wire::NodeKind::Fifo, 0o010_000),
    (wire::NodeKind::Socket, 0o140_000),
    (wire::NodeKind::CharacterDevice, 0o020_000),
    (wire::NodeKind::BlockDevice, 0o060_000),
];

/// Returns the type bits of a mode.
pub(super) fn type_bits(kind: wire::NodeKind) -> u32 {
    KINDS.iter().find(|(known, _)| *known == kind).map_or(S_IFREG, |(_, bits)| *bits)
}

/// Returns the kind of node that the type bits of a mode encode.
pub(super) fn kind(mode: u32) -> Option<wire::NodeKind> {
    KINDS.iter().find(|(_, bits)| *bits == mode & S_IFMT).map(|(kind, _)| *kind)
}

pub(super) fn timestamp(time: wire::Time) -> Timestamp {
    Timestamp { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

pub(super) fn time(timestamp: Timestamp) -> wire::Time {
    wire::Time { seconds: timestamp.seconds, nanoseconds: timestamp.nanoseconds }
}

pub(super) fn attributes(node: wire::Ino, from: &wire::Attributes) -> Attributes {
    Attributes {
        inode: node.0,
        size: from.size,
        blocks: from.blocks,
        atime: timestamp(from.atime),
        mtime: timestamp(from.mtime),
        ctime: timestamp(from.ctime),
        mode: type_bits(from.kind) | u32::from(from.mode),
        links: from.links,
        uid: from.uid,
        gid: from.gid,
        // The kernel's packing of devices has 32 bits (`new_encode_dev`); the packing of C
        // libraries has the same low bits.
        device: from.device as u32,
        block_size: BLOCK_SIZE,
    }
}

pub(super) fn entry(from: &NodeEntry) -> Entry {
    Entry {
        node: from.node.0,
        // A number never names another node.
        generation: 0,
        entry_timeout: from.name_valid,
        attributes_timeout: from.attributes_valid,
        attributes: attributes(from.node, &from.attributes),
    }
}

pub(super) fn statfs(from: &wire::SpaceStatus) -> Statfs {
    Statfs {
        blocks: from.blocks,
        free_blocks: from.free,
        available_blocks: from.available,
        files: from.nodes,
        free_files: from.free_nodes,
        block_size: from.block_size,
        max_name: MAX_NAME,
        fragment_size: from.block_size,
    }
}

/// Converts an error for the kernel. A number that the kernel does not define becomes EIO: it would
/// refuse the reply.
pub(super) fn errno(error: wire::Errno) -> Errno {
    match error.0 {
        1..=511 => Errno::from_raw_os_error(error.0.into()),
        _ => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_modes_agree() {
        for (kind_, bits) in KINDS {
            assert_eq!(type_bits(kind_), bits);
            assert_eq!(kind(bits | 0o644), Some(kind_));
        }
        assert_eq!(kind(0), None);
    }

    #[test]
    fn errors_of_the_server_are_errors_of_the_kernel() {
        assert_eq!(errno(wire::Errno(2)), Errno::NOENT);
        assert_eq!(errno(wire::Errno(0)), Errno::IO);
        assert_eq!(errno(wire::Errno(60_000)), Errno::IO);
    }
}
