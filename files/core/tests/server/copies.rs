//! Model of each client: its leases, and the versions of its copies.

use std::collections::BTreeMap;
use std::time::Duration;

use apus_fs_core::server::CallToken;
use apus_fs_core::wire::{
    Failure, FoundNode, Handle, Ino, LeaseKind, PathStep, RecalledNode, Request, Response,
    SessionRequest, Version,
};

use crate::store::SmallStore;
use crate::world::{Id, TERM};

#[derive(Default)]
struct Belief {
    /// When the last request of the session was sent.
    sent: Duration,
    nodes: BTreeMap<Ino, (LeaseKind, Option<Version>)>,
    /// Leases that it may reclaim from a restarted server, and until when.
    claims: BTreeMap<Ino, LeaseKind>,
    claims_end: Duration,
}

/// Models of all clients.
#[derive(Default)]
pub(crate) struct Copies {
    beliefs: BTreeMap<Id, Belief>,
    calls: BTreeMap<CallToken, (Id, Option<Request>)>,
}

impl Copies {
    pub(crate) fn send(
        &mut self,
        id: Id,
        now: Duration,
        call: CallToken,
        request: Option<Request>,
    ) {
        let belief = self.beliefs.entry(id).or_default();
        if now >= belief.sent + TERM {
            belief.nodes.clear();
        }
        belief.sent = now;
        if let Some(Request::Of { request: SessionRequest::Release { leases }, .. }) = &request {
            for (handle, keep) in leases {
                belief.reduce(handle.ino, *keep);
            }
        }
        self.calls.insert(call, (id, request));
    }

    pub(crate) fn receive(
        &mut self,
        call: CallToken,
        response: &Response,
        handles: &mut BTreeMap<Ino, Handle>,
    ) {
        let (id, request) = self.calls.remove(&call).unwrap();
        let belief = self.beliefs.entry(id).or_default();
        let mut found = |belief: &mut Belief, entry: &FoundNode| {
            handles.insert(entry.handle.ino, entry.handle);
            belief.set(entry.handle.ino, entry.lease, Some(entry.attributes.version));
        };
        let request = match request {
            Some(Request::Of { request, .. }) => Some(request),
            _ => None,
        };
        match (response, request) {
            (Response::Welcome(welcome), _) => {
                if !welcome.resumed {
                    belief.nodes.clear();
                }
                found(belief, &welcome.root);
            }
            (Response::Found { start, steps }, _) => {
                found(belief, start);
                for step in steps {
                    if let PathStep::Found(entry) = step {
                        found(belief, entry);
                    }
                }
            }
            (Response::Listed(listings), _) => {
                for listing in listings {
                    let version = Some(listing.attributes.version);
                    belief.set(listing.directory.ino, listing.lease, version);
                    listing.entries.iter().for_each(|(_, entry)| found(belief, entry));
                }
            }
            (Response::Leased { leases: leased, .. }, Some(SessionRequest::Lease { wanted })) => {
                for (wanted, (kind, attributes)) in wanted.iter().zip(leased) {
                    let version = attributes.map(|attributes| attributes.version);
                    belief.set(wanted.node.ino, *kind, version);
                }
            }
            (Response::Reclaimed(leased), Some(SessionRequest::Reclaim { leases })) => {
                for ((node, _, version), (kind, is_valid)) in leases.iter().zip(leased) {
                    belief.set(node.ino, *kind, is_valid.then_some(*version));
                }
            }
            (Response::BatchDone(done), _) => {
                for (handle, attributes) in &done.changed {
                    handles.insert(handle.ino, *handle);
                    if let Some((_, version)) = belief.nodes.get_mut(&handle.ino) {
                        *version = Some(attributes.version);
                    }
                }
            }
            (Response::Failed(Failure::SessionEnded), _)
            | (Response::Done, Some(SessionRequest::Goodbye)) => belief.nodes.clear(),
            _ => {}
        }
    }

    pub(crate) fn give_back(&mut self, id: Id, nodes: &[RecalledNode]) {
        let belief = self.beliefs.entry(id).or_default();
        nodes.iter().for_each(|node| belief.reduce(node.node.ino, node.keep));
    }

    /// The server was restarted: clients may reclaim their leases until their term ends.
    pub(crate) fn restart(&mut self) {
        self.calls.clear();
        for belief in self.beliefs.values_mut() {
            let nodes = belief.nodes.iter().map(|(ino, (kind, _))| (*ino, *kind));
            belief.claims = nodes.collect();
            belief.claims_end = belief.sent + TERM;
        }
    }

    /// Lease that a client may reclaim on a node.
    pub(crate) fn claim(&self, id: Id, ino: Ino, now: Duration) -> LeaseKind {
        let belief = self.beliefs.get(&id).filter(|belief| now < belief.claims_end);
        belief.and_then(|belief| belief.claims.get(&ino)).copied().unwrap_or_default()
    }

    pub(crate) fn fence(&mut self, id: Id) {
        self.beliefs.entry(id).or_default().nodes.clear();
    }

    /// Checks that leases exclude each other, and that no leased copy is out of date.
    pub(crate) fn check(&self, now: Duration, store: &SmallStore) {
        let mut holders: BTreeMap<Ino, Vec<(Id, LeaseKind)>> = BTreeMap::new();
        for (id, belief) in self.beliefs.iter().filter(|(_, belief)| now < belief.sent + TERM) {
            for (ino, (kind, version)) in &belief.nodes {
                holders.entry(*ino).or_default().push((*id, *kind));
                let (Some(version), Some(current)) = (version, store.version(*ino)) else {
                    continue;
                };
                // Under an exclusive lease the client's own changes may be newer, and are never
                // older.
                assert_eq!(*version, current, "client {id} has an old copy of {ino}: {kind:?}");
            }
        }
        for (ino, holders) in holders {
            let exclusive = holders.iter().any(|(_, kind)| *kind == LeaseKind::Exclusive);
            assert!(!exclusive || holders.len() == 1, "{ino} is leased to {holders:?}");
        }
    }
}

impl Belief {
    fn set(&mut self, ino: Ino, kind: LeaseKind, version: Option<Version>) {
        if kind == LeaseKind::None {
            self.nodes.remove(&ino);
        } else {
            self.nodes.insert(ino, (kind, version));
        }
    }

    fn reduce(&mut self, ino: Ino, keep: LeaseKind) {
        if let Some((kind, version)) = self.nodes.get(&ino).copied() {
            self.set(ino, kind.min(keep), version);
        }
    }
}
