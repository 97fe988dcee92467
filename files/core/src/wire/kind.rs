//! Kinds of requests, for counters and traces.

use crate::wire::request::{Request, SessionRequest};

/// Kind of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // Those of the variants of `Request` and `SessionRequest`.
pub enum RequestKind {
    Hello,
    Renew,
    Goodbye,
    Reclaim,
    LookUp,
    ListTree,
    Read,
    Batch,
    Lease,
    Release,
    Lock,
    TestLock,
    CancelLock,
    GetXattr,
    ListXattr,
    Seek,
    StatFs,
    Status,
}

impl RequestKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Hello,
        Self::Renew,
        Self::Goodbye,
        Self::Reclaim,
        Self::LookUp,
        Self::ListTree,
        Self::Read,
        Self::Batch,
        Self::Lease,
        Self::Release,
        Self::Lock,
        Self::TestLock,
        Self::CancelLock,
        Self::GetXattr,
        Self::ListXattr,
        Self::Seek,
        Self::StatFs,
        Self::Status,
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
            Self::Hello => "hello",
            Self::Renew => "renew",
            Self::Goodbye => "goodbye",
            Self::Reclaim => "reclaim",
            Self::LookUp => "look_up",
            Self::ListTree => "list_tree",
            Self::Read => "read",
            Self::Batch => "batch",
            Self::Lease => "lease",
            Self::Release => "release",
            Self::Lock => "lock",
            Self::TestLock => "test_lock",
            Self::CancelLock => "cancel_lock",
            Self::GetXattr => "get_xattr",
            Self::ListXattr => "list_xattr",
            Self::Seek => "seek",
            Self::StatFs => "stat_fs",
            Self::Status => "status",
        }
    }
}

impl Request {
    /// Returns the kind of the request.
    #[must_use]
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Hello(_) => RequestKind::Hello,
            Self::Of { request, .. } => request.kind(),
        }
    }
}

impl SessionRequest {
    /// Returns the kind of the request.
    #[must_use]
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Renew => RequestKind::Renew,
            Self::Goodbye => RequestKind::Goodbye,
            Self::Reclaim { .. } => RequestKind::Reclaim,
            Self::LookUp(_) => RequestKind::LookUp,
            Self::ListTree(_) => RequestKind::ListTree,
            Self::Read { .. } => RequestKind::Read,
            Self::Batch(_) => RequestKind::Batch,
            Self::Lease { .. } => RequestKind::Lease,
            Self::Release { .. } => RequestKind::Release,
            Self::Lock(_) => RequestKind::Lock,
            Self::TestLock(_) => RequestKind::TestLock,
            Self::CancelLock { .. } => RequestKind::CancelLock,
            Self::GetXattr { .. } => RequestKind::GetXattr,
            Self::ListXattr { .. } => RequestKind::ListXattr,
            Self::Seek { .. } => RequestKind::Seek,
            Self::StatFs => RequestKind::StatFs,
            Self::Status => RequestKind::Status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (number, kind) in (0..).zip(RequestKind::ALL) {
            assert_eq!((kind as u8, RequestKind::from_number(number)), (number, Some(kind)));
        }
        assert_eq!(RequestKind::from_number(RequestKind::ALL.len() as u8), None);
    }
}
