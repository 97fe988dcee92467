//! Observer: passes all observations to the checkers.
//!
//! After the first violation it ignores all events, and the simulation stops.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use apus_proto::Profile;
use apus_wire::{Body, Data, MAX_HEADER_LEN, Packet, Role};
use foldhash::fast::{FixedState, FoldHasher};

use super::attacker::on_path::OnPath;
use super::attacker::taps::Taps;
use super::checker::amplification::Amplification;
use super::checker::content::Content;
use super::checker::contract::Checker;
use super::checker::cutoffs::CutoffsChecker;
use super::checker::execution::ExecutionChecker;
use super::checker::incoming::Incoming;
use super::checker::liveness::Liveness;
use super::checker::memory::ExpectedBytes;
use super::checker::order::Order;
use super::checker::permission::Permission;
use super::checker::recovery::Recovery;
use super::checker::sealing::Sealing;
use super::checker::session::session;
use super::checker::undisturbed::Outcomes;
use super::directory::Directory;
use super::event_log::EventLog;
use super::observation::{CallId, HostEvent, Observation, WirePacket};
use super::scenario::Scenario;
use super::violation::{Violation, ViolationKind};
use apus_sim::kernel::Objection;
use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// Origin of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From the host at the stated address, however late and however often.
    Genuine,
    /// From the hostile host.
    Forged,
}

/// Observer of a run.
pub(crate) struct Observer {
    pub(crate) directory: Directory,
    pub(crate) liveness: Liveness,
    checkers: Option<Checkers>,
    profile: Profile,
    hash: FoldHasher<'static>,
    trace: Option<Rc<RefCell<EventLog>>>,
    pub(crate) violation: Option<Violation>,
    /// Ends of calls, for a comparison with another run.
    pub(crate) outcomes: Outcomes,
    /// Bytes that honest calls may deliver.
    pub(crate) expected: ExpectedBytes,
    /// The packets that the hostile host sees.
    pub(crate) taps: Taps,
    /// The host on the path of sealed packets.
    pub(crate) on_path: Option<OnPath>,
    pub(crate) sealing: Sealing,
    /// Packets passed to drivers.
    pub(crate) packets: u64,
    /// Datagrams passed to links.
    pub(crate) datagrams: u64,
    /// Packets of the hostile host that reached an honest one.
    pub(crate) hostile_packets: u64,
    /// Accepted calls.
    pub(crate) rpcs: u64,
}

/// Checkers of promises that hold only while packets arrive unchanged or not at all.
#[derive(Debug)]
struct Checkers {
    execution: ExecutionChecker,
    content: Content,
    permission: Permission,
    cutoffs: CutoffsChecker,
    incoming: Incoming,
    order: Order,
    amplification: Amplification,
    recovery: Recovery,
}

impl Checkers {
    fn new(directory: &Directory, probes: CallId) -> Self {
        Self {
            execution: ExecutionChecker::new(directory.scenario.calls.len()),
            content: Content,
            permission: Permission::new(directory),
            cutoffs: CutoffsChecker::default(),
            incoming: Incoming::new(directory),
            order: Order::new(directory),
            amplification: Amplification::new(directory),
            recovery: Recovery::new(directory, probes),
        }
    }

    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        self.execution.observe(directory, observation)?;
        self.content.observe(directory, observation)?;
        if directory.runs_module(observation.host)
            && !matches!(observation.event, HostEvent::Crashed)
        {
            // The packets of the module, and their times, are not checked.
            return Ok(());
        }
        self.permission.observe(directory, observation)?;
        self.cutoffs.observe(directory, observation)?;
        // A packet to a peer without keys is dropped below the protocol, and its message starts
        // over when there are keys: these checkers would then miscount granted and ordered bytes.
        let is_sealed = directory.scenario.sealed.is_some();
        if !is_sealed {
            self.incoming.observe(directory, observation)?;
        }
        if !is_sealed && !directory.scenario.serves_attacker() {
            self.order.observe(directory, observation)?;
        }
        self.amplification.observe(directory, observation)?;
        self.recovery.observe(directory, observation)
    }
}

impl Observer {
    /// Creates an observer. Calls from `probes` on are probes.
    pub(crate) fn new(
        scenario: Scenario,
        probes: CallId,
        trace: Option<Rc<RefCell<EventLog>>>,
    ) -> Self {
        let profile = scenario.config.profile();
        let strict = !scenario.has_unnoticed_corruption();
        let taps = Taps::new(scenario.attack.as_ref());
        let outcomes = Outcomes::new(scenario.calls.len());
        let on_path =
            scenario.sealed.map(|meddling| OnPath::new(meddling, scenario.hosts(), scenario.seed));
        let directory = Directory::new(scenario);
        Self {
            liveness: Liveness::new(&directory, probes),
            expected: ExpectedBytes::new(&directory),
            checkers: strict.then(|| Checkers::new(&directory, probes)),
            directory,
            profile,
            hash: FixedState::default().build_hasher(),
            trace,
            violation: None,
            outcomes,
            taps,
            on_path,
            sealing: Sealing::default(),
            packets: 0,
            datagrams: 0,
            hostile_packets: 0,
            rpcs: 0,
        }
    }

    /// Returns whether there was a violation.
    pub(crate) const fn is_over(&self) -> bool {
        self.violation.is_some()
    }

    /// Records an event.
    pub(crate) fn observe(&mut self, at: Nanos, host: HostId, event: HostEvent<'_>) {
        if self.is_over() {
            return;
        }
        let observation = Observation { at, host, event };
        self.hash(&observation);
        self.rpcs += u64::from(matches!(event, HostEvent::Called(_)));
        self.outcomes.observe(&observation);
        self.expected.observe(&self.directory, &observation);
        if let Some(trace) = &self.trace {
            trace.borrow_mut().observe(&observation);
        }
        let result = self.liveness.observe(&self.directory, &observation).and_then(|()| {
            match &mut self.checkers {
                Some(checkers) => checkers.observe(&self.directory, &observation),
                None => Ok(()),
            }
        });
        let result = result.and_then(|()| self.sealing.observe(&self.directory, &observation));
        if matches!(event, HostEvent::Crashed) {
            self.directory.host_crashed(host);
        }
        self.record(result);
    }

    /// Records that a packet was passed to the driver. Returns the call of a message's first
    /// packet, if it is in a session: a first packet without a session is sent again as soon as
    /// there is a session, whether it has arrived or not.
    pub(crate) fn sent(
        &mut self,
        at: Nanos,
        host: HostId,
        peer: HostId,
        bytes: &[u8],
        place: usize,
    ) -> Option<CallId> {
        self.packets += 1;
        match Packet::parse(self.profile, bytes) {
            Ok(packet) => {
                let wire = self.wire(host, peer, &packet, bytes.len(), true, place);
                self.observe(at, host, HostEvent::Sent(wire));
                let is_first = matches!(packet.body, Body::Data(Data { offset: 0, .. }, _));
                wire.call.filter(|_| is_first && session(&packet).is_some())
            }
            Err(error) => {
                self.record(Err(Violation {
                    kind: ViolationKind::Content,
                    calls: Vec::new(),
                    expected: format!("host {host} sends valid packets"),
                    observed: format!(
                        "{error}: {:02x?}",
                        &bytes[..bytes.len().min(MAX_HEADER_LEN)]
                    ),
                }));
                None
            }
        }
    }

    /// Records that packets of a datagram, from position `place` on, were received from the driver.
    /// Returns their number. Invalid packets are ignored, because no promise covers them.
    pub(crate) fn received(
        &mut self,
        at: Nanos,
        host: HostId,
        peer: HostId,
        bytes: &[u8],
        place: usize,
        origin: Origin,
    ) -> usize {
        let mut count = 0;
        for packet in Packet::all(self.profile, bytes).filter_map(Result::ok) {
            let wire = self.wire(host, peer, &packet, len(&packet), false, place + count);
            let event = match origin {
                Origin::Genuine => HostEvent::Received(wire),
                Origin::Forged => HostEvent::Forged(wire),
            };
            self.observe(at, host, event);
            count += 1;
        }
        count
    }

    /// Records the objection of the module on `host` to a packet. Objections to packets of other
    /// modules, and to corrupted packets, are ignored.
    pub(crate) fn module_objection(
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
            self.record(Err(Violation {
                kind: ViolationKind::Interop,
                calls: call.into_iter().collect(),
                expected: format!("the module of host {host} accepts the packets of host {from}"),
                observed: format!("{objection:?}: {packet:?}"),
            }));
        }
    }

    /// Records a violation; only the first one counts.
    pub(crate) fn record(&mut self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            self.violation.get_or_insert(violation);
        }
    }

    /// Checks the retransmitted bytes; call when no packet is in flight.
    pub(crate) fn check_resends(&mut self) {
        if let Some(checkers) = &self.checkers {
            self.record(checkers.recovery.check_resends());
        }
    }

    /// Returns a hash over all observations.
    pub(crate) fn observation_hash(&self) -> u64 {
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
    ) -> WirePacket<'a> {
        let sender = packet.header.sender_id.sender();
        let here_is_client = (sender == Role::Client) == sent;
        let (client, server) = if here_is_client { (host, peer) } else { (peer, host) };
        let call = self.directory.find(client, server, packet.header.sender_id.client_id());
        WirePacket { peer, call, sender, packet, len, place }
    }

    fn hash(&mut self, observation: &Observation<'_>) {
        let hash = &mut self.hash;
        hash.write_u64(observation.at);
        hash.write_u32(observation.host);
        match &observation.event {
            HostEvent::Waiting(call) => hash.write_u64(u64::from(*call) << 4),
            HostEvent::Called(call) => hash.write_u64(u64::from(*call) << 4 | 1),
            HostEvent::Cancelled(call) => hash.write_u64(u64::from(*call) << 4 | 2),
            HostEvent::Replied(call) => hash.write_u64(u64::from(*call) << 4 | 3),
            HostEvent::Abandoned(call) => hash.write_u64(u64::from(*call) << 4 | 4),
            HostEvent::Requested(call, bytes) => {
                hash.write_u64(call.map_or(5, |call| u64::from(call) << 4 | 6));
                hash.write(bytes);
            }
            HostEvent::Responded(call, bytes) => {
                hash.write_u64(u64::from(*call) << 4 | 7);
                hash.write(bytes);
            }
            HostEvent::Failed(call, error) => {
                hash.write_u64(u64::from(*call) << 4 | 8);
                hash.write(format!("{error:?}").as_bytes());
            }
            HostEvent::Crashed => hash.write_u64(9),
            // The header identifies a packet; its payload is checked elsewhere.
            HostEvent::Sent(wire) => hash_packet(hash, 10, wire),
            HostEvent::Received(wire) => hash_packet(hash, 11, wire),
            HostEvent::Forged(wire) => hash_packet(hash, 12, wire),
            HostEvent::Served(peer) => hash.write_u64(u64::from(*peer) << 4 | 13),
            HostEvent::Frozen(peer) => hash.write_u64(u64::from(*peer) << 4 | 14),
        }
    }
}

/// Returns the length of a packet in bytes.
fn len(packet: &Packet<'_>) -> usize {
    let header = packet.emit_header(&mut [0; MAX_HEADER_LEN]);
    header + if let Body::Data(_, payload) = &packet.body { payload.len() } else { 0 }
}

fn hash_packet(hash: &mut FoldHasher<'static>, what: u64, wire: &WirePacket<'_>) {
    let mut header = [0; MAX_HEADER_LEN];
    let len = wire.packet.emit_header(&mut header);
    hash.write_u64(what | u64::from(wire.peer) << 8 | (wire.len as u64) << 40);
    hash.write(&header[..len]);
}
