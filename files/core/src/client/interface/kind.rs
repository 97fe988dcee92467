//! Kinds of operations, for counters and traces.

use super::operation::Operation;

/// Kind of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Those of the variants of `Operation`.
pub enum OperationKind {
    LookUp,
    Forget,
    GetAttributes,
    SetAttributes,
    ReadLink,
    Create,
    CreateTemporary,
    Unlink,
    RemoveDirectory,
    Rename,
    Link,
    Open,
    Read,
    Write,
    Flush,
    Release,
    Sync,
    OpenDirectory,
    ReadDirectory,
    ReleaseDirectory,
    SetXattr,
    GetXattr,
    ListXattr,
    RemoveXattr,
    GetSpace,
    Lock,
    TestLock,
    Allocate,
    Seek,
    CopyRange,
}

impl OperationKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 30] = [
        Self::LookUp,
        Self::Forget,
        Self::GetAttributes,
        Self::SetAttributes,
        Self::ReadLink,
        Self::Create,
        Self::CreateTemporary,
        Self::Unlink,
        Self::RemoveDirectory,
        Self::Rename,
        Self::Link,
        Self::Open,
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Release,
        Self::Sync,
        Self::OpenDirectory,
        Self::ReadDirectory,
        Self::ReleaseDirectory,
        Self::SetXattr,
        Self::GetXattr,
        Self::ListXattr,
        Self::RemoveXattr,
        Self::GetSpace,
        Self::Lock,
        Self::TestLock,
        Self::Allocate,
        Self::Seek,
        Self::CopyRange,
    ];

    /// Returns the kind with a number, which is its place in [`ALL`](Self::ALL).
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the kind's name in counters and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LookUp => "look_up",
            Self::Forget => "forget",
            Self::GetAttributes => "get_attributes",
            Self::SetAttributes => "set_attributes",
            Self::ReadLink => "read_link",
            Self::Create => "create",
            Self::CreateTemporary => "create_temporary",
            Self::Unlink => "unlink",
            Self::RemoveDirectory => "remove_directory",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Release => "release",
            Self::Sync => "sync",
            Self::OpenDirectory => "open_directory",
            Self::ReadDirectory => "read_directory",
            Self::ReleaseDirectory => "release_directory",
            Self::SetXattr => "set_xattr",
            Self::GetXattr => "get_xattr",
            Self::ListXattr => "list_xattr",
            Self::RemoveXattr => "remove_xattr",
            Self::GetSpace => "get_space",
            Self::Lock => "lock",
            Self::TestLock => "test_lock",
            Self::Allocate => "allocate",
            Self::Seek => "seek",
            Self::CopyRange => "copy_range",
        }
    }
}

impl Operation {
    /// Returns the kind of the operation.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::LookUp(_) => OperationKind::LookUp,
            Self::Forget { .. } => OperationKind::Forget,
            Self::GetAttributes { .. } => OperationKind::GetAttributes,
            Self::SetAttributes { .. } => OperationKind::SetAttributes,
            Self::ReadLink { .. } => OperationKind::ReadLink,
            Self::Create { .. } => OperationKind::Create,
            Self::CreateTemporary { .. } => OperationKind::CreateTemporary,
            Self::Unlink(_) => OperationKind::Unlink,
            Self::RemoveDirectory(_) => OperationKind::RemoveDirectory,
            Self::Rename { .. } => OperationKind::Rename,
            Self::Link { .. } => OperationKind::Link,
            Self::Open { .. } => OperationKind::Open,
            Self::Read { .. } => OperationKind::Read,
            Self::Write { .. } => OperationKind::Write,
            Self::Flush { .. } => OperationKind::Flush,
            Self::Release { .. } => OperationKind::Release,
            Self::Sync { .. } => OperationKind::Sync,
            Self::OpenDirectory { .. } => OperationKind::OpenDirectory,
            Self::ReadDirectory { .. } => OperationKind::ReadDirectory,
            Self::ReleaseDirectory { .. } => OperationKind::ReleaseDirectory,
            Self::SetXattr { .. } => OperationKind::SetXattr,
            Self::GetXattr { .. } => OperationKind::GetXattr,
            Self::ListXattr { .. } => OperationKind::ListXattr,
            Self::RemoveXattr { .. } => OperationKind::RemoveXattr,
            Self::GetSpace => OperationKind::GetSpace,
            Self::Lock { .. } => OperationKind::Lock,
            Self::TestLock { .. } => OperationKind::TestLock,
            Self::Allocate { .. } => OperationKind::Allocate,
            Self::Seek { .. } => OperationKind::Seek,
            Self::CopyRange { .. } => OperationKind::CopyRange,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (number, kind) in (0..).zip(OperationKind::ALL) {
            assert_eq!((kind as u8, OperationKind::from_number(number)), (number, Some(kind)));
        }
        assert_eq!(OperationKind::from_number(OperationKind::ALL.len() as u8), None);
    }
}
