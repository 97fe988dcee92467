//! Calls to the server that have not returned.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use crate::wire::{Ino, LeaseKind, LockOwner, Name, SessionRequest};

use crate::client::interface::effect::{ClientCall, OpToken};
use crate::held_locks::HeldLock;

/// The purpose of a call. Operations with the same purpose share one call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::client) enum Purpose {
    /// Hello.
    Greet,
    /// Reclaim, with the nodes of the claimed leases.
    Reclaim(Vec<Ino>),
    /// A lock that the client had in the session before.
    Relock(Ino, LockOwner),
    /// Withdrawal of an owner's lock requests that wait at the server.
    CancelLock(Ino, LockOwner),
    /// Restores an owner's earlier lock after a lock request whose operation has ended.
    Restore(Ino, HeldLock<LockOwner>),
    /// Renew.
    Renew,
    /// A name, or a node itself.
    LookUp(Ino, Option<Name>),
    /// A directory's names.
    List(Ino),
    /// Leases.
    Lease(Vec<(Ino, LeaseKind)>),
    /// Bytes of a file.
    Read(Ino, u64, u32),
    /// All extended attributes' names.
    Xattrs(Ino),
    /// A batch.
    Batch(u64),
    /// A response that only one operation uses.
    Operation(OpToken),
    /// A message whose response is ignored.
    Farewell,
}

/// A call that has not returned.
#[derive(Clone, Debug)]
pub(in crate::client) struct Outstanding {
    pub(in crate::client) purpose: Purpose,
    /// The request; `None` for Hello and batches, which are built each time they are sent.
    pub(in crate::client) request: Option<SessionRequest>,
    /// Operations that wait for it.
    pub(in crate::client) waiters: Vec<OpToken>,
    /// Nodes that were recalled since it was sent. Grants on them in the response are void: the
    /// server may have granted them before the recall.
    pub(in crate::client) voided: HashSet<Ino>,
    pub(in crate::client) sent_at: Duration,
    /// When it is sent again, because it failed.
    pub(in crate::client) retry_at: Option<Duration>,
    pub(in crate::client) failures: u32,
}

impl Outstanding {
    /// Leases that it claims.
    pub(in crate::client) fn claims(&self) -> Vec<(Ino, LeaseKind)> {
        match &self.request {
            Some(SessionRequest::Reclaim { leases }) => {
                leases.iter().map(|(node, kind, _)| (node.ino, *kind)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// All calls that have not returned.
#[derive(Debug, Default)]
pub(in crate::client) struct Calls {
    outstanding: BTreeMap<ClientCall, Outstanding>,
    by_purpose: HashMap<Purpose, ClientCall>,
    /// First byte, end and call of reads whose bytes will be used.
    reads: BTreeMap<(Ino, u64), (u64, ClientCall)>,
    last: u64,
    /// Nodes whose leases are returned with a batch. They count like the nodes of a Release.
    pub(in crate::client) returning: BTreeSet<Ino>,
}

impl Calls {
    /// Adds a call and returns its name.
    pub(in crate::client) fn add(
        &mut self,
        now: Duration,
        purpose: Purpose,
        request: Option<SessionRequest>,
    ) -> ClientCall {
        self.last += 1;
        let call = ClientCall(self.last);
        self.by_purpose.insert(purpose.clone(), call);
        if let Purpose::Read(file, offset, length) = purpose {
            self.reads.insert((file, offset), (offset + u64::from(length), call));
        }
        let outstanding = Outstanding {
            purpose,
            request,
            waiters: Vec::new(),
            voided: self.being_released(),
            sent_at: now,
            retry_at: None,
            failures: 0,
        };
        self.outstanding.insert(call, outstanding);
        call
    }

    /// Returns the nodes whose leases are being returned: the server may grant a lease again before
    /// it processes the return.
    fn being_released(&self) -> HashSet<Ino> {
        let releases = self.outstanding.values().filter_map(|call| match &call.request {
            Some(SessionRequest::Release { leases }) => Some(leases),
            _ => None,
        });
        let released = releases.flatten().map(|(node, _)| node.ino);
        released.chain(self.returning.iter().copied()).collect()
    }

    /// Returns the call with a purpose, if it has not returned.
    pub(in crate::client) fn find(&self, purpose: &Purpose) -> Option<ClientCall> {
        self.by_purpose.get(purpose).copied()
    }

    pub(in crate::client) fn get_mut(&mut self, call: ClientCall) -> Option<&mut Outstanding> {
        self.outstanding.get_mut(&call)
    }

    /// Adds an operation to the waiters of a call.
    pub(in crate::client) fn add_waiter(&mut self, call: ClientCall, token: OpToken) {
        if let Some(outstanding) = self.outstanding.get_mut(&call) {
            outstanding.waiters.push(token);
        }
    }

    /// Removes a call that has returned; `None` if it was dropped before.
    pub(in crate::client) fn remove(&mut self, call: ClientCall) -> Option<Outstanding> {
        let outstanding = self.outstanding.remove(&call)?;
        if self.by_purpose.get(&outstanding.purpose) == Some(&call) {
            self.by_purpose.remove(&outstanding.purpose);
        }
        if let Purpose::Read(file, offset, _) = outstanding.purpose
            && self.reads.get(&(file, offset)).is_some_and(|(_, read)| *read == call)
        {
            self.reads.remove(&(file, offset));
        }
        Some(outstanding)
    }

    /// Leases that are being claimed.
    pub(in crate::client) fn unclaimed(&self) -> Vec<(Ino, LeaseKind)> {
        self.outstanding.values().flat_map(Outstanding::claims).collect()
    }

    /// Drops all calls and returns the operations that waited for them.
    pub(in crate::client) fn drop_all(&mut self) -> Vec<OpToken> {
        self.by_purpose.clear();
        self.reads.clear();
        let dropped = std::mem::take(&mut self.outstanding);
        dropped.into_values().flat_map(|outstanding| outstanding.waiters).collect()
    }

    /// Returns the outstanding read that returns a byte of a file.
    pub(in crate::client) fn reading(&self, file: Ino, at: u64) -> Option<ClientCall> {
        let ((found, _), (end, call)) = self.reads.range(..=(file, at)).next_back()?;
        (*found == file && at < *end).then_some(*call)
    }

    /// Returns the number of bytes from `from` on, up to `length`, that no outstanding read
    /// returns; `None` if one returns the first of them.
    pub(in crate::client) fn unread(&self, file: Ino, from: u64, length: u64) -> Option<u32> {
        if self.reading(file, from).is_some() {
            return None;
        }
        let next = self.reads.range((file, from)..(file, from + length)).next();
        let length = next.map_or(length, |((_, next), _)| next - from);
        u32::try_from(length).ok()
    }

    /// Detaches the outstanding reads of a file: no operation waits for them any more.
    fn forget_reads(&mut self, file: Ino) {
        let reads = self.reads.range((file, 0)..=(file, u64::MAX));
        for key in reads.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.reads.remove(&key);
        }
    }

    /// Voids grants on a node in all outstanding responses.
    pub(in crate::client) fn void(&mut self, node: Ino) {
        self.forget_reads(node);
        for outstanding in self.outstanding.values_mut() {
            outstanding.voided.insert(node);
        }
    }

    /// Voids outstanding reads of a file: the server may have read before it applied a batch whose
    /// bytes are dropped here, or before another client's change.
    pub(in crate::client) fn void_reads(&mut self, node: Ino) {
        self.forget_reads(node);
        for outstanding in self.outstanding.values_mut() {
            if matches!(outstanding.purpose, Purpose::Read(file, ..) if file == node) {
                outstanding.voided.insert(node);
            }
        }
    }

    /// Calls that are to be sent again now.
    pub(in crate::client) fn due(&self, now: Duration) -> Vec<ClientCall> {
        let due = self.outstanding.iter();
        let due = due.filter(|(_, call)| call.retry_at.is_some_and(|retry| retry <= now));
        due.map(|(call, _)| *call).collect()
    }

    /// When a call is to be sent again.
    pub(in crate::client) fn deadline(&self) -> Option<Duration> {
        self.outstanding.values().filter_map(|call| call.retry_at).min()
    }

    pub(in crate::client) fn len(&self) -> usize {
        self.outstanding.len()
    }
}

/// How long to wait before a call is sent again that failed `failures` times.
pub(in crate::client) fn backoff(failures: u32) -> Duration {
    Duration::from_millis(20 << failures.min(5))
}
