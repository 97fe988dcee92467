//! Bounds on the contents of a message. A decoder refuses longer ones; an encoder's caller splits
//! them.

/// Bytes of a name in a directory. Source: Linux `NAME_MAX`.
pub const MAX_NAME: usize = 255;

/// Bytes of a symbolic link's target. Source: Linux `PATH_MAX`, without the NUL.
pub const MAX_TARGET: usize = 4095;

/// Bytes of the name of an extended attribute. Source: Linux `XATTR_NAME_MAX`.
pub const MAX_XATTR_NAME: usize = 255;

/// Bytes of the value of an extended attribute. Source: Linux `XATTR_SIZE_MAX`.
pub const MAX_XATTR_VALUE: usize = 65_536;

/// Components of one path walk. Chosen by us: deeper paths are walked in several calls.
pub const MAX_PATH_COMPONENTS: usize = 256;

/// Records of a batch. Chosen by us: a batch of 1,000 creations is one message of about 100 kB.
pub const MAX_RECORDS: usize = 4_096;

/// Nodes in a list: leases to request, release or recall, and ranges to read.
pub const MAX_NODES: usize = 4_096;

/// Entries of all listings in one response.
pub const MAX_ENTRIES: usize = 65_536;

/// Bytes of a message's payload. Chosen by us: half of the longest message of the transport.
pub const MAX_PAYLOAD: usize = 32 << 20;

/// Bytes of a message's header.
pub const MAX_HEADER: usize = 16 << 20;

/// Bytes of a client's name, which `apus fs status` shows.
pub const MAX_CLIENT_NAME: usize = 255;

/// Bytes of an export's name.
pub const MAX_EXPORT_NAME: usize = 64;

/// Ranges of numbers that one Hello names.
pub const MAX_RANGES: usize = 1_024;

/// Lines of each list of `apus fs status`.
pub const MAX_STATUS_LINES: usize = 4_096;
