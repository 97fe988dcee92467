//! Checks of a batch before it is appended: proofs, own numbers, and the leases that its changes
//! need.

use std::collections::BTreeSet;

use crate::wire::{Errno, Handle, Ino, LeaseKind, Record};

use super::access::Access;
use super::session::Session;
use super::settings::MAX_CREATED_LEASES;
use crate::store::Store;

/// Effect of a record on leases and orphans, once it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeEvent {
    /// The node is new, and has a name.
    Created,
    /// The node is new, and has no name.
    CreatedWithoutName,
    /// The node has lost a name.
    Unnamed,
    /// The node has got a name.
    Named,
    /// The client has closed the node.
    Closed,
}

/// Effects of a batch, by record.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) events: Vec<(u32, Ino, NodeEvent)>,
    /// Nodes on which the session gets an exclusive lease before the batch is appended (FSSERVE-2).
    pub(super) acquired: BTreeSet<Ino>,
}

/// Why a batch is not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objection {
    /// It is refused.
    Refuse(Errno),
    /// It waits until leases are reclaimed: until then, it is unknown which ones exist.
    Wait,
}

impl From<Errno> for Objection {
    fn from(errno: Errno) -> Self {
        Self::Refuse(errno)
    }
}

struct Checker<'a, S> {
    access: &'a Access<S>,
    number: u64,
    session: &'a Session,
    changes: Changes,
}

/// Checks the records of a batch, in order. The first objection counts.
pub(super) fn check_records<S: Store>(
    access: &Access<S>,
    number: u64,
    session: &Session,
    records: &[Record],
) -> Result<Changes, Objection> {
    let is_close = |record: &Record| matches!(record, Record::Close { .. });
    let is_read_only = access.settings.read_only || session.read_only;
    if is_read_only && !records.iter().all(is_close) {
        return Err(Errno::ROFS.into());
    }
    let mut checker = Checker { access, number, session, changes: Changes::default() };
    for (at, record) in records.iter().enumerate() {
        checker.record(at as u32, record)?;
    }
    let leases = access.holdings.leases.count(number) + checker.changes.acquired.len();
    if leases > MAX_CREATED_LEASES { Err(Errno::NFILE.into()) } else { Ok(checker.changes) }
}

impl<S: Store> Checker<'_, S> {
    fn record(&mut self, at: u32, record: &Record) -> Result<(), Objection> {
        match record {
            Record::Create { parent, ino, .. } => {
                if let Some((parent, _)) = parent {
                    self.changed(*parent)?;
                }
                if !self.session.owns(*ino) {
                    return Err(Errno::INVAL.into());
                }
                if self.access.holdings.leases.is_taken(self.number, *ino, LeaseKind::Exclusive) {
                    return Err(Errno::STALE.into());
                }
                self.changes.acquired.insert(*ino);
                let is_named = parent.is_some();
                let event =
                    if is_named { NodeEvent::Created } else { NodeEvent::CreatedWithoutName };
                self.note(at, *ino, event);
            }
            Record::Link { node, parent, .. } => {
                self.changed(*parent)?;
                self.renamed(*node)?;
                self.note(at, node.ino, NodeEvent::Named);
            }
            Record::Unlink { parent, node, .. } | Record::RemoveDirectory { parent, node, .. } => {
                self.changed(*parent)?;
                self.renamed(*node)?;
                self.note(at, node.ino, NodeEvent::Unnamed);
            }
            Record::Rename { from, to, node, replaced, exchange } => {
                self.changed(from.0)?;
                self.changed(to.0)?;
                self.renamed(*node)?;
                if let Some(replaced) = replaced {
                    self.renamed(*replaced)?;
                    if !exchange {
                        self.note(at, replaced.ino, NodeEvent::Unnamed);
                    }
                }
            }
            Record::Write { file: node, .. }
            | Record::SetAttributes { node, .. }
            | Record::Allocate { file: node, .. }
            | Record::SetXattr { node, .. }
            | Record::RemoveXattr { node, .. } => self.changed(*node)?,
            Record::CopyRange { from, to, .. } => {
                self.changed(*to)?;
                let from = self.valid(*from)?;
                // The copied contents must be those that the client would read.
                let is_own = self.changes.acquired.contains(&from);
                if !is_own && self.access.holdings.leases.held(self.number, from) == LeaseKind::None
                {
                    return Err(Errno::STALE.into());
                }
            }
            Record::Close { node } => {
                let ino = self.valid(*node)?;
                self.note(at, ino, NodeEvent::Closed);
            }
        }
        Ok(())
    }

    fn note(&mut self, at: u32, ino: Ino, event: NodeEvent) {
        self.changes.events.push((at, ino, event));
    }

    fn valid(&self, node: Handle) -> Result<Ino, Objection> {
        let is_own = node.proof == 0 && self.session.owns(node.ino);
        let is_valid = is_own || self.access.proofs.is_made(node);
        if is_valid { Ok(node.ino) } else { Err(Errno::STALE.into()) }
    }

    fn is_exclusive(&self, ino: Ino) -> bool {
        self.access.holdings.leases.held(self.number, ino) == LeaseKind::Exclusive
    }

    /// Checks a change of contents, attributes or a directory: the client must have an exclusive
    /// lease.
    fn changed(&self, node: Handle) -> Result<(), Objection> {
        let ino = self.valid(node)?;
        let is_created = self.changes.acquired.contains(&ino);
        if is_created || self.is_exclusive(ino) { Ok(()) } else { Err(Errno::STALE.into()) }
    }

    /// Checks a change of a node's names. Its directory is leased, and the change does not depend
    /// on other clients' changes of the node: so it suffices that no other session has a lease.
    fn renamed(&mut self, node: Handle) -> Result<(), Objection> {
        let ino = self.valid(node)?;
        if self.is_exclusive(ino) || self.changes.acquired.contains(&ino) {
            return Ok(());
        }
        if self.access.holdings.leases.is_taken(self.number, ino, LeaseKind::Exclusive) {
            return Err(Errno::STALE.into());
        }
        if self.access.is_grace() {
            return Err(Objection::Wait);
        }
        self.changes.acquired.insert(ino);
        Ok(())
    }
}
