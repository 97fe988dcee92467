//! What comes back from the server.

use crate::wire::{
    BatchDone, FailedBatch, Failure, Handle, InoRange, LeaseKind, Response, SessionRequest,
    Welcome, WireVersion, frame,
};
use bytes::Bytes;
use std::collections::HashSet;
use std::time::Duration;

use super::Client;
use super::calls::{Outstanding, Purpose, backoff};
use super::effect::{ClientCall, ClientEffect, Clock, Invalidation};
use super::session::SessionState;
use crate::wire::limits::MAX_NODES;
use crate::wire::{Errno, Ino};

/// Versions that this client speaks, in words.
fn spoken() -> String {
    format!("{} to {}", WireVersion::OLDEST.0, WireVersion::CURRENT.0)
}

impl Client {
    pub(super) fn take_response(
        &mut self,
        clock: &Clock,
        call: ClientCall,
        response: Option<Bytes>,
    ) {
        let decoded = response.map(frame::decode::<Response>);
        let Some(Ok(decoded)) = decoded else {
            return self.call_failed(clock, call);
        };
        let Some(outstanding) = self.calls.remove(call) else { return };
        self.ready.extend(outstanding.waiters.iter().copied());
        // A call that was sent again may be answered for the first time.
        if outstanding.failures == 0 {
            self.session.note_round_trip(clock.now.saturating_sub(outstanding.sent_at));
        }
        match &decoded.message {
            Response::Failed(Failure::SessionEnded) => {
                self.to_reclaim.extend(outstanding.claims());
                return self.end_session(clock);
            }
            Response::Failed(failure @ Failure::Version { .. }) => {
                return self.refuse(&format!("{failure}, and this client {}", spoken()));
            }
            Response::Failed(failure @ (Failure::NotTrusted | Failure::NoSuchExport)) => {
                return self.refuse(&failure.to_string());
            }
            _ => self.session.renew(outstanding.sent_at),
        }
        if self.session.state == SessionState::Live {
            self.ready.extend(self.for_session.drain(..));
        }
        self.dispatch(clock, outstanding, decoded.message, &decoded.payload);
    }

    fn dispatch(
        &mut self,
        clock: &Clock,
        outstanding: Outstanding,
        response: Response,
        payload: &Bytes,
    ) {
        let voided = &outstanding.voided;
        match (outstanding.purpose, response) {
            (Purpose::Greet, Response::Welcome(welcome)) => {
                self.welcome(clock, outstanding.sent_at, &welcome, voided);
            }
            (Purpose::Greet, _) => {
                self.session.greet_at = clock.now + backoff(5);
            }
            (Purpose::Reclaim(nodes), Response::Reclaimed(leases)) => {
                self.reclaimed(clock, &nodes, &leases, voided);
            }
            (Purpose::Relock(ino, owner), response) => {
                self.relocked(clock, ino, owner, &response);
            }
            (Purpose::CancelLock(ino, owner), _) => self.lock_cancelled(clock, ino, owner),
            (Purpose::Restore(ino, part), response) => {
                self.lock_restored(clock, (ino, part), &response);
            }
            (Purpose::Batch(_), Response::BatchDone(done)) => self.batch_done(clock, &done),
            (Purpose::Batch(number), Response::Failed(failure)) => {
                self.batch_refused(clock, number, &failure);
            }
            (Purpose::LookUp(start, name), Response::Found { start: entry, steps }) => {
                if entry.handle.ino == start {
                    self.install(&entry, voided);
                    self.install_walk(start, name.as_slice(), &steps, voided);
                }
            }
            (Purpose::LookUp(node, None), Response::Failed(Failure::Errno(_))) => {
                self.lose_node(node);
            }
            (Purpose::LookUp(_, Some(_)), Response::Failed(Failure::Errno(error)))
            | (
                Purpose::List(_) | Purpose::Read(..) | Purpose::Xattrs(_),
                Response::Failed(Failure::Errno(error)),
            )
            | (Purpose::Lease(_), Response::Failed(Failure::Errno(error))) => {
                self.fail_waiters(&outstanding.waiters, error);
            }
            (Purpose::List(_), Response::Listed(listings)) => {
                let after = match &outstanding.request {
                    Some(SessionRequest::ListTree(list)) => list.after.clone(),
                    _ => None,
                };
                for (index, listing) in listings.iter().enumerate() {
                    let after = if index == 0 { after.as_ref() } else { None };
                    self.install_listing(listing, after, voided);
                }
            }
            (Purpose::Lease(nodes), Response::Leased { leases, lent }) => {
                for ((ino, _), (kind, attributes)) in nodes.iter().zip(&leases) {
                    let own = self.nodes.get(ino).map(|node| node.lease);
                    if attributes.is_none() && own == Some(LeaseKind::Exclusive) {
                        continue; // Its creation is on its way.
                    }
                    if attributes.is_none() && *kind == LeaseKind::None {
                        // The node is gone, and the name that led to it is looked up again.
                        self.lose_node(*ino);
                        continue;
                    }
                    let kind = if voided.contains(ino) { LeaseKind::None } else { *kind };
                    if let Ok(handle) = self.handle(*ino) {
                        self.install_leased(handle, attributes.as_ref(), kind);
                    }
                    if kind == LeaseKind::Exclusive && lent.contains(ino) {
                        self.loans.add(*ino, &outstanding.waiters);
                    }
                }
            }
            (Purpose::Read(ino, offset, wanted), Response::ReadDone(_)) => {
                let (from, to) = self.read_ahead.kept(ino);
                let is_wanted = !outstanding.waiters.is_empty()
                    || (offset < to && offset + u64::from(wanted) > from);
                if let Some(node) = self.nodes.get_mut(&ino).filter(|_| !voided.contains(&ino))
                    && node.lease > LeaseKind::None
                    && is_wanted
                {
                    let length = payload.len().min(wanted as usize);
                    node.contents.fill_from_server(offset, &payload.slice(..length));
                    // The file is shorter at the server than its attributes say: the rest reads as zeros.
                    let rest = Bytes::from(vec![0; wanted as usize - length]);
                    node.contents.fill_from_server(offset + length as u64, &rest);
                }
            }
            (Purpose::Xattrs(ino), Response::Xattrs(names)) => {
                if let Some(node) = self.nodes.get_mut(&ino).filter(|_| !voided.contains(&ino))
                    && names.is_empty()
                {
                    node.xattrs = Some(Default::default());
                }
                self.give(&outstanding.waiters, &Response::Xattrs(names));
            }
            (Purpose::Operation(token), response) => {
                self.lock_answered(clock, token, &response);
                self.give(&[token], &response);
            }
            (_, Response::Failed(failure)) => {
                self.effects.push_back(ClientEffect::Warn(failure.to_string()));
                self.fail_waiters(&outstanding.waiters, Errno::IO);
            }
            // The server has answered something else, or nothing of interest.
            (Purpose::Renew | Purpose::Farewell, _) => {}
            _ => self.fail_waiters(&outstanding.waiters, Errno::IO),
        }
    }

    /// Gives operations a response that is not cached.
    fn give(&mut self, waiters: &[super::OpToken], response: &Response) {
        for token in waiters {
            if let Some(pending) = self.pending.get_mut(token) {
                pending.response = Some(response.clone());
                self.ready.push_back(*token);
            }
        }
    }

    fn fail_waiters(&mut self, waiters: &[super::OpToken], error: Errno) {
        for token in waiters {
            if self.pending.remove(token).is_some() {
                self.reply(*token, Err(error));
            }
        }
    }

    /// Sends a call again after a while: all requests can be repeated.
    fn call_failed(&mut self, clock: &Clock, call: ClientCall) {
        let Some(outstanding) = self.calls.get_mut(call) else { return };
        outstanding.failures += 1;
        outstanding.retry_at = Some(clock.now + backoff(outstanding.failures));
        let since = outstanding.sent_at;
        self.session.silent_since.get_or_insert(since);
    }

    /// The session has ended: the next one begins, and claims what this one had (FS-13).
    pub(super) fn end_session(&mut self, clock: &Clock) {
        if self.session.state == SessionState::Refused {
            return;
        }
        self.session.number = None;
        self.note_unsent_paths();
        self.log.keep_leases();
        // A session that ends before its leases are claimed renews none of those that the client had before.
        let was_away = self.session.was_away && self.session.state != SessionState::Live;
        self.session.was_away = was_away || clock.now >= self.session.valid_until;
        self.greet_again(clock);
        let mut data = Vec::new();
        let locks = self.locks.iter();
        self.to_relock =
            locks.flat_map(|(ino, locks)| locks.iter().map(|lock| (*ino, *lock))).collect();
        for node in self.nodes.values_mut() {
            // A server that was restarted learns only by this that the node is open here (FSSERVE-10).
            if node.lease > LeaseKind::None || node.openings > 0 {
                self.to_reclaim.push((node.ino(), node.lease));
                node.lease = LeaseKind::None;
            }
            if node.kernel_data {
                data.push(Invalidation::Node { node: node.ino(), data: true });
            }
            node.recall = None;
        }
        // In one order, so that two runs of a simulation are equal. The root, which a Welcome leases, is claimed first: no recall of it can
        // have been answered by then.
        self.to_reclaim.sort_unstable_by(|one, other| other.cmp(one));
        self.to_reclaim.dedup_by_key(|(ino, _)| *ino);
        data.push(Invalidation::Names);
        self.drop_recalls();
        self.invalidate(data);
    }

    /// Greets with the present session, or without one.
    pub(super) fn greet_again(&mut self, clock: &Clock) {
        self.session.state = SessionState::Greeting;
        self.session.greet_at = clock.now;
        self.session.greeting += 1;
        let unclaimed = self.calls.unclaimed();
        self.to_reclaim.extend(unclaimed);
        let waiting = self.calls.drop_all();
        self.for_session.extend(waiting);
        self.log.forget_calls();
    }

    /// Asks for numbers of new nodes, with a Hello that resumes the session.
    pub(super) fn ask_inos(&mut self, clock: &Clock) {
        if self.calls.find(&Purpose::Greet).is_none() {
            let call = self.calls.add(clock.now, Purpose::Greet, None);
            self.send(clock, call);
        }
    }

    fn refuse(&mut self, why: &str) {
        self.session.state = SessionState::Refused;
        self.effects.push_back(ClientEffect::Warn(why.to_owned()));
        self.give_up_log(Errno::IO, why, 0);
        for token in std::mem::take(&mut self.pending).into_keys() {
            self.reply(token, Err(Errno::IO));
        }
    }

    fn welcome(&mut self, clock: &Clock, sent: Duration, welcome: &Welcome, voided: &HashSet<Ino>) {
        if !(WireVersion::OLDEST..=WireVersion::CURRENT).contains(&welcome.version) {
            let version = welcome.version.0;
            let why = format!("the server speaks version {version}, and this client {}", spoken());
            return self.refuse(&why);
        }
        if self.session.number.is_some() && !welcome.resumed {
            self.end_session(clock);
        }
        self.session.number = Some(welcome.session);
        self.session.is_server_read_only = welcome.read_only;
        self.session.term = Duration::from_millis(welcome.term_ms.clamp(100, 600_000).into());
        self.session.renew(sent);
        let (first, count) = (welcome.first_ino, welcome.inos);
        if count > 0 && first.checked_add(count).is_some_and(|end| end < 1 << 63) {
            self.session.add_range(InoRange { first, count, proof: welcome.inos_proof });
        }
        let failed = welcome.failed.filter(|failed| failed.number <= welcome.applied);
        if let Some(failed) = failed.filter(|failed| self.is_news(failed)) {
            return self.batch_failed(clock, &failed);
        }
        // A server that says less was applied than it said before has lost its log: nothing can be done but to go on from here.
        if welcome.applied >= self.log.applied() && welcome.applied <= self.log.last_number() {
            self.applied(welcome.applied);
        } else if welcome.applied != self.log.applied() {
            self.effects.push_back(ClientEffect::Warn(format!(
                "the server has applied {} batches of this client, but had confirmed {}",
                welcome.applied,
                self.log.applied()
            )));
            return self.refuse("the server has lost confirmed changes");
        }
        self.install(&welcome.root, voided);
        self.session.state = SessionState::Reclaiming;
        self.reclaim_next(clock);
    }

    /// Claims the next leases, or begins to use the session.
    pub(super) fn reclaim_next(&mut self, clock: &Clock) {
        let rest = self.to_reclaim.len().saturating_sub(MAX_NODES);
        let part = self.to_reclaim.split_off(rest);
        let (mut nodes, mut leases) = (Vec::new(), Vec::new());
        for (ino, kind) in part {
            let applied = self.log.applied();
            let Some(node) = self.nodes.get_mut(&ino) else { continue };
            if node.created_in > applied {
                // The server does not know it yet: its lease comes with its creation.
                node.lease = kind;
                continue;
            }
            // The lease of a client that was away may have become another client's: it claims what its changes need, and lets the server
            // know what it has open (FSSERVE-11).
            let kind = if self.session.was_away && !node.is_dirty(applied) {
                node.drop_cache();
                LeaseKind::None
            } else {
                kind
            };
            if kind == LeaseKind::None && node.openings == 0 {
                continue;
            }
            nodes.push(ino);
            leases.push((node.handle, kind, node.attributes.version));
        }
        if !nodes.is_empty() {
            let request = SessionRequest::Reclaim { leases };
            self.call(clock, Purpose::Reclaim(nodes), request);
            return;
        }
        if self.relock_next(clock) {
            return;
        }
        self.call(clock, Purpose::Farewell, SessionRequest::Reclaim { leases: Vec::new() });
        self.session.state = SessionState::Live;
        self.unsent_paths.clear();
        self.restore_all_locks(clock);
        self.ready.extend(self.for_session.drain(..));
    }

    fn reclaimed(
        &mut self,
        clock: &Clock,
        nodes: &[Ino],
        leases: &[(LeaseKind, bool)],
        voided: &HashSet<Ino>,
    ) {
        let (applied, mut conflicts) = (self.log.applied(), false);
        for (index, ino) in nodes.iter().enumerate() {
            let (mut kind, valid) = leases.get(index).copied().unwrap_or((LeaseKind::None, false));
            let Some(node) = self.nodes.get_mut(ino) else { continue };
            // While a recall waits for its answer, the lease that it recalls is in force: the changes leave under it.
            if voided.contains(ino) && node.recall.is_none() {
                kind = LeaseKind::None;
            }
            let dirty = node.is_dirty(applied);
            // A client that was away for longer than its term may have lost the lease before the server was restarted.
            let certain = valid || !self.session.was_away;
            if dirty && (kind < LeaseKind::Exclusive || !certain) {
                conflicts = true;
            }
            if kind > LeaseKind::None && (valid || (dirty && certain)) {
                node.lease = kind;
                node.reduce_lease(kind);
            } else {
                // Attributes are fetched again before they are used.
                node.drop_cache();
            }
        }
        if conflicts {
            let why = "another client has changed the same files meanwhile";
            return self.lose_log(clock, Errno::IO, why, 0);
        }
        self.reclaim_next(clock);
    }

    fn batch_done(&mut self, clock: &Clock, done: &BatchDone) {
        if done.applied > self.log.last_number() {
            return; // The server speaks of batches that do not exist.
        }
        if let Some((record, error)) = done.failed {
            let failed = FailedBatch { number: done.applied, record, error };
            if self.is_news(&failed) {
                self.batch_failed(clock, &failed);
            }
            return;
        }
        for (handle, attributes) in &done.changed {
            self.install_changed(done.applied, *handle, attributes);
        }
        self.applied(done.applied);
    }

    /// Returns whether a batch is not known to be applied, or to have failed.
    fn is_news(&self, failed: &FailedBatch) -> bool {
        failed.number > self.log.applied() && self.log.sealed(failed.number).is_some()
    }

    /// Ends the operations of a batch that failed. Those before it have not, and none behind it is applied until the next greeting.
    fn batch_failed(&mut self, clock: &Clock, failed: &FailedBatch) {
        let FailedBatch { number, record, error } = *failed;
        match self.log.sealed(number).and_then(|batch| batch.alone) {
            // The others do not depend on it.
            Some(token) => {
                self.syncing.remove(&token);
                self.renames.refuse(number);
                self.fail_waiters(&[token], error);
                self.applied(number);
                self.greet_again(clock);
            }
            None => {
                let why = format!("record {record} of batch {number} failed: {error}");
                let earlier = self.log.applied() + 1..number;
                let earlier = earlier.filter_map(|number| self.log.sealed(number));
                let applied: usize = earlier.map(|batch| batch.batch.records.len()).sum();
                self.lose_log(clock, error, &why, applied + record as usize);
                self.applied(number);
            }
        }
    }

    fn batch_refused(&mut self, clock: &Clock, number: u64, failure: &Failure) {
        self.counters.batches_refused += 1;
        match failure {
            // An earlier one has failed, and its response may be under way: its Welcome says what is applied, and what has failed.
            Failure::BatchOutOfOrder { .. } => self.greet_again(clock),
            failure => {
                let error = match failure {
                    Failure::Errno(error) => *error,
                    _ => Errno::IO,
                };
                self.lose_log(clock, error, &format!("batch {number}: {failure}"), 0);
            }
        }
    }

    /// The server does not know a node any more.
    fn lose_node(&mut self, ino: Ino) {
        if ino == Ino::ROOT {
            return;
        }
        self.calls.void(ino);
        self.locks.remove(&ino);
        let Some(mut node) = self.nodes.remove(&ino) else { return };
        if let Some(parent) = node.parent.and_then(|parent| self.nodes.get_mut(&parent)) {
            parent.names_mut().known.retain(|_, child| *child != ino);
            parent.names_mut().complete = false;
        }
        if node.is_directory() && node.references > 0 {
            node.become_removed();
            node.lease = LeaseKind::None;
            self.nodes.insert(ino, node);
        }
    }

    /// Handles of all nodes of leases that are given back by an operation.
    pub(super) fn handles(
        &self,
        nodes: &[(Ino, LeaseKind)],
    ) -> Result<Vec<(Handle, LeaseKind)>, Errno> {
        nodes.iter().map(|(ino, kind)| Ok((self.handle(*ino)?, *kind))).collect()
    }
}
