//! Who looks at everything that is seen?
//!
//! All checkers, one after the other, until one finds a violation. From then on nobody looks any more, and
//! the world stands still.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use apus_proto::Profile;
use apus_wire::{MAX_HEADER_LEN, Packet, Role};
use foldhash::fast::{FixedState, FoldHasher};

use super::checker::Checker;
use super::checker::amplification::Amplification;
use super::checker::content::Content;
use super::checker::execution::ExecutionChecker;
use super::checker::incoming::Incoming;
use super::checker::liveness::Liveness;
use super::checker::order::Order;
use super::checker::permission::Permission;
use super::directory::Directory;
use super::scenario::Scenario;
use super::seen::{CallId, Seen, What, Wire};
use super::trace::Trace;
use super::violation::{Kind, Violation};
use apus_sim::kernel::Objection;
use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// Looks at a run.
pub(crate) struct Watch {
    pub(crate) directory: Directory,
    pub(crate) liveness: Liveness,
    checkers: Option<Checkers>,
    profile: Profile,
    hash: FoldHasher<'static>,
    trace: Option<Rc<RefCell<Trace>>>,
    pub(crate) violation: Option<Violation>,
    /// Packets that were handed to drivers.
    pub(crate) packets: u64,
    /// Calls that were accepted.
    pub(crate) rpcs: u64,
}

/// What is promised as long as packets arrive as they were sent, or not at all.
#[derive(Debug)]
struct Checkers {
    execution: ExecutionChecker,
    content: Content,
    permission: Permission,
    incoming: Incoming,
    order: Order,
    amplification: Amplification,
}

impl Checkers {
    fn new(directory: &Directory) -> Self {
        Self {
            execution: ExecutionChecker::new(directory.scenario.calls.len()),
            content: Content,
            permission: Permission::new(directory),
            incoming: Incoming::new(directory),
            order: Order::new(directory),
            amplification: Amplification::new(directory),
        }
    }

    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        self.execution.see(directory, seen)?;
        self.content.see(directory, seen)?;
        if directory.runs_module(seen.host) && !matches!(seen.what, What::Crashed) {
            // What the module sends, and when, is its own business.
            return Ok(());
        }
        self.permission.see(directory, seen)?;
        self.incoming.see(directory, seen)?;
        self.order.see(directory, seen)?;
        self.amplification.see(directory, seen)
    }
}

impl Watch {
    /// Calls from `probes` on are probes.
    pub(crate) fn new(
        scenario: Scenario,
        probes: CallId,
        trace: Option<Rc<RefCell<Trace>>>,
    ) -> Self {
        let profile = scenario.config.profile();
        let strict = !scenario.lets_corruption_through();
        let directory = Directory::new(scenario);
        Self {
            liveness: Liveness::new(&directory, probes),
            checkers: strict.then(|| Checkers::new(&directory)),
            directory,
            profile,
            hash: FixedState::default().build_hasher(),
            trace,
            violation: None,
            packets: 0,
            rpcs: 0,
        }
    }

    /// Whether a promise was broken.
    pub(crate) const fn is_over(&self) -> bool {
        self.violation.is_some()
    }

    /// Notes what was seen.
    pub(crate) fn see(&mut self, at: Nanos, host: HostId, what: What<'_>) {
        if self.is_over() {
            return;
        }
        let seen = Seen { at, host, what };
        self.hash(&seen);
        self.rpcs += u64::from(matches!(what, What::Called(_)));
        if let Some(trace) = &self.trace {
            trace.borrow_mut().see(&seen);
        }
        let result =
            self.liveness.see(&self.directory, &seen).and_then(|()| match &mut self.checkers {
                Some(checkers) => checkers.see(&self.directory, &seen),
                None => Ok(()),
            });
        if matches!(what, What::Crashed) {
            self.directory.died(host);
        }
        self.note(result);
    }

    /// A packet was handed to the driver.
    pub(crate) fn sent(
        &mut self,
        at: Nanos,
        host: HostId,
        peer: HostId,
        bytes: &[u8],
        place: usize,
    ) {
        self.packets += 1;
        match Packet::parse(self.profile, bytes) {
            Ok(packet) => {
                let wire = self.wire(host, peer, &packet, bytes.len(), true, place);
                self.see(at, host, What::Sent(wire));
            }
            Err(error) => self.note(Err(Violation {
                kind: Kind::Content,
                calls: Vec::new(),
                expected: format!("host {host} sends packets"),
                seen: format!("{error}: {:02x?}", &bytes[..bytes.len().min(MAX_HEADER_LEN)]),
            })),
        }
    }

    /// A packet was taken from the driver. What is none is nothing that anybody is promised.
    pub(crate) fn received(&mut self, at: Nanos, host: HostId, peer: HostId, bytes: &[u8]) {
        if let Ok(packet) = Packet::parse(self.profile, bytes) {
            let wire = self.wire(host, peer, &packet, bytes.len(), false, 0);
            self.see(at, host, What::Received(wire));
        }
    }

    /// The module of `host` has something against a packet. What modules have against each other is not looked
    /// at, nor what they have against packets that are not as they were sent.
    pub(crate) fn objected(
        &mut self,
        host: HostId,
        from: HostId,
        bytes: &[u8],
        objection: Objection,
    ) {
        let strict = self.checkers.is_some() && !self.directory.runs_module(from);
        if strict && objection.is_fault() {
            let packet = Packet::parse(self.profile, bytes);
            let call = packet.as_ref().ok().and_then(|packet| {
                let wire = self.wire(host, from, packet, bytes.len(), false, 0);
                wire.call
            });
            self.note(Err(Violation {
                kind: Kind::Interop,
                calls: call.into_iter().collect(),
                expected: format!("the module of host {host} takes what host {from} sends"),
                seen: format!("{objection:?}: {packet:?}"),
            }));
        }
    }

    /// Notes a violation; the first one counts.
    pub(crate) fn note(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    /// A number that differs if anything that was seen does.
    pub(crate) fn hash_of_all(&self) -> u64 {
        self.hash.finish()
    }

    fn wire<'a>(
        &self,
        host: HostId,
        peer: HostId,
        packet: &'a Packet<'a>,
        len: usize,
        sent: bool,
        place: usize,
    ) -> Wire<'a> {
        let sender = packet.header.sender_id.sender();
        let here_is_client = (sender == Role::Client) == sent;
        let (client, server) = if here_is_client { (host, peer) } else { (peer, host) };
        let call = self.directory.find(client, server, packet.header.sender_id.client_id());
        Wire { peer, call, sender, packet, len, place }
    }

    fn hash(&mut self, seen: &Seen<'_>) {
        let hash = &mut self.hash;
        hash.write_u64(seen.at);
        hash.write_u32(seen.host);
        match &seen.what {
            What::Waiting(call) => hash.write_u64(u64::from(*call) << 4),
            What::Called(call) => hash.write_u64(u64::from(*call) << 4 | 1),
            What::Cancelled(call) => hash.write_u64(u64::from(*call) << 4 | 2),
            What::Replied(call) => hash.write_u64(u64::from(*call) << 4 | 3),
            What::Abandoned(call) => hash.write_u64(u64::from(*call) << 4 | 4),
            What::Requested(call, bytes) => {
                hash.write_u64(call.map_or(5, |call| u64::from(call) << 4 | 6));
                hash.write(bytes);
            }
            What::Responded(call, bytes) => {
                hash.write_u64(u64::from(*call) << 4 | 7);
                hash.write(bytes);
            }
            What::Failed(call, error) => {
                hash.write_u64(u64::from(*call) << 4 | 8);
                hash.write(format!("{error:?}").as_bytes());
            }
            What::Crashed => hash.write_u64(9),
            // What a packet says is in its header, and what it carries is checked elsewhere.
            What::Sent(wire) => hash_packet(hash, 10, wire),
            What::Received(wire) => hash_packet(hash, 11, wire),
        }
    }
}

fn hash_packet(hash: &mut FoldHasher<'static>, what: u64, wire: &Wire<'_>) {
    let mut header = [0; MAX_HEADER_LEN];
    let len = wire.packet.emit_header(&mut header);
    hash.write_u64(what | u64::from(wire.peer) << 8 | (wire.len as u64) << 40);
    hash.write(&header[..len]);
}
