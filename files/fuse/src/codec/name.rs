//! Names of directory entries.

/// Longest name in bytes (`NAME_MAX`).
pub const MAX_NAME: usize = 255;

/// Returns whether `name` is a single component of a path: not empty, without slash or NUL, neither
/// `.` nor `..`.
///
/// Its length is not checked: the kernel passes long names, too, and the file system answers
/// ENAMETOOLONG.
#[must_use]
pub fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Returns whether the kernel takes `name` as the name of an entry.
pub(crate) fn can_be_sent(name: &[u8]) -> bool {
    is_component(name) && name.len() <= MAX_NAME
}
