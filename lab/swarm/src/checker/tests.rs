//! Checkers accept correct event sequences and report incorrect sequences.
//!
//! The sequences are written by hand: host 0 calls host 1, in session 7.

use std::collections::BTreeMap;

use apus_proto::{Config, Execution, FailureKind, Live, RpcError};
use apus_wire::{
    Ack, AckList, Body, DATA_HEADER_LEN, Data, Dialect, Flags, Grant, HEADER_LEN, Header, Packet,
    Resend, Role, SenderId, UdpFields,
};
use bytes::Bytes;

use super::amplification::Amplification;
use super::content::Content;
use super::contract::Checker;
use super::execution::ExecutionChecker;
use super::incoming::Incoming;
use super::liveness::Liveness;
use super::memory;
use super::order::Order;
use super::permission::Permission;
use crate::call::{PlannedCall, ServerAction};
use crate::directory::Directory;
use crate::ends::Division;
use crate::observation::{CallId, HostEvent, Observation, WirePacket};
use crate::payload::payload;
use crate::scenario::Scenario;
use crate::violation::{Violation, ViolationKind};
use apus_sim::fabric::Settings;
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_sim::preset;
use apus_sim::topology::Shape;
use apus_workload::time::MILLISECOND;

pub(super) const CLIENT: HostId = 0;
pub(super) const SERVER: HostId = 1;
pub(super) const SESSION: u64 = 7;

/// Creates calls with requests and responses of these lengths.
pub(super) fn directory(lengths: &[(u32, u32)], config: Config) -> Directory {
    let mut topology = preset::sigcomm18();
    topology.shape = Shape { racks: 1, hosts_per_rack: 3, spines: 0 };
    let call = |&(request, response): &(u32, u32)| PlannedCall {
        from: CLIENT,
        to: SERVER,
        at: 0,
        request,
        response,
        service: 0,
        answer: ServerAction::Reply,
        cancel: None,
        deadline: Some(MILLISECOND),
        idempotent: false,
        repeats: None,
    };
    let scenario = Scenario {
        baits: Vec::new(),
        division: Division::Whole,
        processes_publish: false,
        restarts: Vec::new(),
        kernel_hosts: Vec::new(),
        seed: 0,
        config,
        fabric: Settings::new(topology, 0),
        packet_limit: 1_472,
        has_link_rate: true,
        consumes_late: false,
        calls: lengths.iter().map(call).collect(),
        sizes: String::new(),
        faults: fault::Settings::default(),
        outages: Outages::default(),
        sharing: None,
        processors: None,
        overload: None,
        attack: None,
        sealed: None,
        lost: BTreeMap::new(),
        heal_at: 0,
    };
    let mut directory = Directory::new(scenario);
    for call in 0..lengths.len() as CallId {
        directory.register(call, id(call));
    }
    directory
}

fn id(call: CallId) -> u64 {
    1_000 + 2 * u64::from(call)
}

/// A checker and the state of its input.
pub(super) struct Script<C> {
    pub(super) directory: Directory,
    pub(super) checker: C,
    pub(super) at: u64,
    /// Session in packets.
    pub(super) session: u64,
}

impl<C: Checker> Script<C> {
    fn new(lengths: &[(u32, u32)], config: Config, checker: impl FnOnce(&Directory) -> C) -> Self {
        let directory = directory(lengths, config);
        Self { checker: checker(&directory), directory, at: 0, session: SESSION }
    }

    pub(super) fn observe(&mut self, host: HostId, event: HostEvent<'_>) -> Result<(), Violation> {
        self.at += 1;
        let observation = Observation { at: self.at, host, event };
        self.checker.observe(&self.directory, &observation)
    }

    fn packet(
        &mut self,
        host: HostId,
        call: CallId,
        sender: Role,
        body: Body<'_>,
        flags: Flags,
        is_sent: bool,
    ) -> Result<(), Violation> {
        let fields = UdpFields { flags, incarnation: self.session, ..UdpFields::default() };
        let sender_id = SenderId::new(id(call), sender);
        let mut header = Header::new(body.kind(), 1, 1, sender_id, Dialect::Udp(fields));
        let len = match &body {
            Body::Data(data, payload) => {
                header.sequence = data.offset;
                DATA_HEADER_LEN + payload.len()
            }
            _ => HEADER_LEN,
        };
        let packet = Packet { header, body };
        let peer = 1 - host;
        let wire = WirePacket { peer, call: Some(call), sender, packet: &packet, len, place: 0 };
        self.observe(host, if is_sent { HostEvent::Sent(wire) } else { HostEvent::Received(wire) })
    }

    /// Records that the sender passes a packet to its driver.
    pub(super) fn sent(
        &mut self,
        call: CallId,
        sender: Role,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        let host = if sender == Role::Client { CLIENT } else { SERVER };
        self.packet(host, call, sender, body, Flags::SESSION, true)
    }

    /// Records that the other end receives the packet.
    pub(super) fn received(
        &mut self,
        call: CallId,
        sender: Role,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        let host = if sender == Role::Client { SERVER } else { CLIENT };
        self.packet(host, call, sender, body, Flags::SESSION, false)
    }
}

/// Returns a DATA packet of the message that `sender` transmits.
pub(super) fn piece(
    directory: &Directory,
    call: CallId,
    sender: Role,
    offset: u32,
    bytes: usize,
) -> (Data, Bytes) {
    let planned = directory.call(call);
    let length = if sender == Role::Client { planned.request } else { planned.response };
    let whole = payload(call, sender, length as usize);
    let data = Data { offset, ..Data::first(length, 1_000.min(length)) };
    (data, whole.slice(offset as usize..offset as usize + bytes))
}

/// Asserts that a checker reports a violation of this kind.
pub(super) fn assert_violation(kind: ViolationKind, result: &Result<(), Violation>) {
    assert_eq!(result.as_ref().unwrap_err().kind, kind);
}

fn grant(offset: u32) -> Body<'static> {
    Body::Grant(Grant { offset, priority: 0 })
}

fn executions() -> Script<ExecutionChecker> {
    Script::new(&[(10, 10)], Config::default(), |_| ExecutionChecker::new(1))
}

#[test]
fn a_call_is_executed_once_and_ends_once() {
    let mut script = executions();
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    script.observe(SERVER, HostEvent::Requested(Some(0), b"")).unwrap();
    script.observe(SERVER, HostEvent::Replied(0)).unwrap();
    script.observe(CLIENT, HostEvent::Responded(0, b"")).unwrap();
    assert_violation(
        ViolationKind::Execution,
        &script.observe(CLIENT, HostEvent::Responded(0, b"")),
    );
    assert_violation(
        ViolationKind::Execution,
        &script.observe(SERVER, HostEvent::Requested(Some(0), b"")),
    );
    assert_violation(
        ViolationKind::Execution,
        &script.observe(SERVER, HostEvent::Requested(None, b"")),
    );
}

#[test]
fn a_response_needs_a_reply_and_a_call_ends_once() {
    let mut script = executions();
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    assert_violation(
        ViolationKind::Execution,
        &script.observe(CLIENT, HostEvent::Responded(0, b"")),
    );
    let mut script = executions();
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    script.observe(CLIENT, HostEvent::Cancelled(0)).unwrap();
    let error = RpcError { kind: FailureKind::Cancelled, execution: Execution::Unknown };
    assert_violation(
        ViolationKind::Execution,
        &script.observe(CLIENT, HostEvent::Failed(0, error)),
    );
}

#[test]
fn a_failed_call_reports_its_execution_correctly() {
    for (outcome, executed, lies) in [
        (Execution::NotExecuted, false, false),
        (Execution::NotExecuted, true, true),
        (Execution::Executed, false, true),
        (Execution::Executed, true, false),
        (Execution::Unknown, true, false),
    ] {
        let mut script = executions();
        script.observe(CLIENT, HostEvent::Called(0)).unwrap();
        if executed {
            script.observe(SERVER, HostEvent::Requested(Some(0), b"")).unwrap();
        }
        let error = RpcError { kind: FailureKind::DeadlineExceeded, execution: outcome };
        assert_eq!(
            script.observe(CLIENT, HostEvent::Failed(0, error)).is_err(),
            lies,
            "{outcome:?}"
        );
    }
    let mut script = executions();
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    let error = RpcError { kind: FailureKind::DeadlineExceeded, execution: Execution::NotExecuted };
    script.observe(CLIENT, HostEvent::Failed(0, error)).unwrap();
    assert_violation(
        ViolationKind::Execution,
        &script.observe(SERVER, HostEvent::Requested(Some(0), b"")),
    );
}

#[test]
fn bytes_at_a_wrong_offset_are_found() {
    let mut script = Script::new(&[(3_000, 10)], Config::default(), |_| Content);
    let request = payload(0, Role::Client, 3_000);
    script.observe(SERVER, HostEvent::Requested(Some(0), &request)).unwrap();
    assert_violation(
        ViolationKind::Content,
        &script.observe(SERVER, HostEvent::Requested(Some(0), &request[1..])),
    );
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 100, 1_000);
    script.sent(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    let shifted = Data { offset: 101, ..data };
    assert_violation(
        ViolationKind::Content,
        &script.sent(0, Role::Client, Body::Data(shifted, &bytes)),
    );
    let longer = Data { message_length: 3_001, ..data };
    assert_violation(
        ViolationKind::Content,
        &script.sent(0, Role::Client, Body::Data(longer, &bytes)),
    );
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_472);
    assert_violation(
        ViolationKind::Content,
        &script.sent(0, Role::Client, Body::Data(data, &bytes)),
    );
}

#[test]
fn unscheduled_and_granted_bytes_may_be_sent() {
    let mut script = Script::new(&[(5_000, 10)], Config::default(), Permission::new);
    let send = |script: &mut Script<Permission>, offset, bytes, retransmit| {
        let (data, bytes) = piece(&script.directory, 0, Role::Client, offset, bytes);
        script.sent(0, Role::Client, Body::Data(Data { retransmit, ..data }, &bytes))
    };
    send(&mut script, 0, 1_000, false).unwrap();
    assert_violation(ViolationKind::Permission, &send(&mut script, 1_000, 500, true));
    script.received(0, Role::Server, grant(1_400)).unwrap();
    send(&mut script, 1_000, 1_400, false).unwrap();
    send(&mut script, 0, 1_000, true).unwrap();
    assert_violation(ViolationKind::Permission, &send(&mut script, 2_400, 100, false));
}

#[test]
fn no_packet_crosses_the_unscheduled_limit_or_skips_bytes() {
    for (offset, bytes) in [(0, 1_001), (500, 100)] {
        let mut script = Script::new(&[(5_000, 10)], Config::default(), Permission::new);
        let (data, bytes) = piece(&script.directory, 0, Role::Client, offset, bytes);
        assert_violation(
            ViolationKind::Permission,
            &script.sent(0, Role::Client, Body::Data(data, &bytes)),
        );
    }
}

#[test]
fn grants_stay_within_max_incoming() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut script = Script::new(&[(50_000, 1), (50_000, 1)], config, Incoming::new);
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_000);
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    script.sent(0, Role::Server, grant(6_000)).unwrap();
    assert_violation(ViolationKind::Incoming, &script.sent(0, Role::Server, grant(6_000)));
    script.sent(1, Role::Server, grant(5_000)).unwrap();
    assert_violation(ViolationKind::Incoming, &script.sent(0, Role::Server, grant(6_001)));
}

/// (Seed 66351203362267: a request that was being released was granted once more, and counted from
/// then on.)
#[test]
fn requests_of_an_earlier_session_do_not_count() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut script = Script::new(&[(50_000, 1), (50_000, 1)], config, Incoming::new);
    for (call, session) in [(0, SESSION), (1, SESSION + 1)] {
        script.session = session;
        let (data, bytes) = piece(&script.directory, call, Role::Client, 0, 1_000);
        script.received(call, Role::Client, Body::Data(data, &bytes)).unwrap();
    }
    script.session = SESSION;
    script.sent(0, Role::Server, grant(6_000)).unwrap();
    script.session = SESSION + 1;
    script.sent(1, Role::Server, grant(10_000)).unwrap();
    assert_violation(ViolationKind::Incoming, &script.sent(1, Role::Server, grant(11_001)));
}

/// (Seed 19207205901240: the client stalled for longer than the timeout in the middle of a
/// request.)
#[test]
fn a_request_may_start_over_after_silence_for_the_timeout() {
    let config = Config::builder().max_incoming(10_000).timeout_usecs(400_000).build().unwrap();
    let mut script = Script::new(&[(50_000, 1)], config, Incoming::new);
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_000);
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    script.sent(0, Role::Server, grant(6_000)).unwrap();
    script.at += 399 * MILLISECOND;
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    assert_violation(ViolationKind::Incoming, &script.sent(0, Role::Server, grant(6_000)));
    script.at += 400 * MILLISECOND;
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    script.sent(0, Role::Server, grant(6_000)).unwrap();
}

#[test]
fn ended_and_silent_messages_return_their_share() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut script = Script::new(&[(50_000, 1); 4], config, Incoming::new);
    script.sent(0, Role::Server, grant(10_000)).unwrap();
    script.received(0, Role::Client, Body::Ack(AckList::EMPTY)).unwrap();
    script.sent(1, Role::Server, grant(10_000)).unwrap();
    let resend = Resend { offset: 0, length: 10_000, priority: 7, brief: false };
    script.sent(1, Role::Server, Body::Resend(resend)).unwrap();
    script.sent(2, Role::Server, grant(10_000)).unwrap();
    assert_violation(ViolationKind::Incoming, &script.sent(3, Role::Server, grant(1)));
}

/// Creates two requests that may be sent at the same time; the second is shorter.
fn order(fraction: u64) -> Script<Order> {
    let config = Config::builder().pacer_fifo_fraction(fraction).build().unwrap();
    let mut script = Script::new(&[(50_000, 1), (5_000, 1)], config, Order::new);
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    script.observe(CLIENT, HostEvent::Called(1)).unwrap();
    script
}

/// (Seed 1873: a request that had sent all permitted bytes was granted more in a session that its
/// server had lost.)
#[test]
fn a_grant_in_a_lost_session_permits_no_sending() {
    let run = |is_lost: bool| {
        let mut script = order(0);
        let send = |script: &mut Script<Order>, call| {
            let (data, bytes) = piece(&script.directory, call, Role::Client, 0, 1_000);
            script.sent(call, Role::Client, Body::Data(data, &bytes))
        };
        send(&mut script, 1).unwrap();
        if is_lost {
            script.session = SESSION + 1;
            let flags = Flags::SESSION.with(Flags::CONFIRM);
            script.packet(CLIENT, 0, Role::Server, Body::NeedAck, flags, false).unwrap();
        }
        script.session = SESSION;
        script.packet(CLIENT, 1, Role::Server, grant(5_000), Flags::SESSION, false).unwrap();
        send(&mut script, 0)
    };
    assert_violation(ViolationKind::Order, &run(false));
    run(true).unwrap();
}

#[test]
fn the_shortest_is_sent_first_except_for_the_share_of_the_oldest() {
    let send = |script: &mut Script<Order>, call| {
        let (data, bytes) = piece(&script.directory, call, Role::Client, 0, 1_000);
        script.sent(call, Role::Client, Body::Data(data, &bytes))
    };
    send(&mut order(0), 1).unwrap();
    assert_violation(ViolationKind::Order, &send(&mut order(0), 0));
    send(&mut order(50), 0).unwrap();
    let mut script = order(0);
    let response = piece(&script.directory, 1, Role::Server, 0, 1);
    script.received(1, Role::Server, Body::Data(response.0, &response.1)).unwrap();
    send(&mut script, 0).unwrap();
}

#[test]
fn the_oldest_gets_no_more_than_its_share() {
    let mut script = order(50);
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_000);
    let unscheduled = Data { incoming: 50_000, ..data };
    let mut send = |_| script.sent(0, Role::Client, Body::Data(unscheduled, &bytes));
    let allowed = (0..100).take_while(|turn| send(*turn).is_ok()).count();
    assert!((4..8).contains(&allowed), "what a burst earns, and a packet: {allowed}");
}

#[test]
fn open_calls_are_reported() {
    let mut script = Script::new(&[(10, 10), (10, 10)], Config::default(), |d| Liveness::new(d, 1));
    script.observe(CLIENT, HostEvent::Waiting(0)).unwrap();
    assert_violation(ViolationKind::Liveness, &script.checker.check_ends(&script.directory, 5));
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    assert_violation(ViolationKind::Liveness, &script.checker.check_ends(&script.directory, 5));
    script.observe(CLIENT, HostEvent::Responded(0, b"")).unwrap();
    script.checker.check_ends(&script.directory, 5).unwrap();
    assert_eq!(script.checker.open(), 0);
    script.observe(CLIENT, HostEvent::Called(1)).unwrap();
    let error = RpcError { kind: FailureKind::PeerRestarted, execution: Execution::Unknown };
    assert_violation(ViolationKind::Liveness, &script.observe(CLIENT, HostEvent::Failed(1, error)));
}

#[test]
fn missed_deadlines_are_reported_except_after_a_crash() {
    let mut script = Script::new(&[(10, 10)], Config::default(), |d| Liveness::new(d, 1));
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    script.at = 2 * MILLISECOND;
    assert_violation(
        ViolationKind::Liveness,
        &script.observe(CLIENT, HostEvent::Responded(0, b"")),
    );
    let mut script = Script::new(&[(10, 10)], Config::default(), |d| Liveness::new(d, 1));
    script.observe(CLIENT, HostEvent::Called(0)).unwrap();
    script.observe(CLIENT, HostEvent::Crashed).unwrap();
    script.checker.check_ends(&script.directory, 5).unwrap();
}

#[test]
fn only_peers_may_remain() {
    let mut live = Live::default();
    live.peers = 3;
    memory::check(0, &live, false).unwrap();
    assert_violation(ViolationKind::Memory, &memory::check(0, &live, true));
    live.send_bytes = 1;
    assert_violation(ViolationKind::Memory, &memory::check(0, &live, false));
}

fn amplification() -> Script<Amplification> {
    Script::new(&[(3_000, 3_000)], Config::default(), Amplification::new)
}

#[test]
fn an_unconfirmed_client_receives_at_most_three_times_its_bytes() {
    let mut script = amplification();
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1);
    script.packet(SERVER, 0, Role::Client, Body::Data(data, &bytes), Flags::NONE, false).unwrap();
    // 85 bytes have arrived. Each challenge has 56.
    let challenge = |script: &mut Script<Amplification>| {
        let flags = Flags::SESSION.with(Flags::CONFIRM);
        script.packet(SERVER, 0, Role::Server, Body::NeedAck, flags, true)
    };
    (0..4).for_each(|_| challenge(&mut script).unwrap());
    assert_violation(ViolationKind::Amplification, &challenge(&mut script));
    script.received(0, Role::Client, Body::Busy).unwrap();
    let (data, bytes) = piece(&script.directory, 0, Role::Server, 0, 1_000);
    script.sent(0, Role::Server, Body::Data(data, &bytes)).unwrap();
}

#[test]
fn control_packets_are_bounded() {
    let mut script = amplification();
    script.sent(0, Role::Client, Body::Busy).unwrap_err();
    let mut script = amplification();
    let mut resend = |_| script.sent(0, Role::Client, Body::Resend(Resend::everything(7)));
    assert_eq!((0..1_000).take_while(|turn| resend(*turn).is_ok()).count(), 128);
    let mut script = amplification();
    script.received(0, Role::Client, Body::Busy).unwrap();
    // The client has not repeated a proposed session; only these challenges matter here.
    script.packet(SERVER, 0, Role::Server, Body::NeedAck, Flags::SESSION, true).unwrap();
    script.received(0, Role::Client, Body::Busy).unwrap();
    let mut challenge = |_| script.sent(0, Role::Server, Body::NeedAck);
    let sent = (0..100).take_while(|turn| challenge(*turn).is_ok()).count();
    assert!((10..30).contains(&sent), "{sent}");
}

#[test]
fn need_ack_ends_with_the_acknowledgment() {
    let mut script = amplification();
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_000);
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    let mut list = AckList::EMPTY;
    list.push(Ack { client_id: id(0), server_port: 1 }).unwrap();
    script.received(0, Role::Client, Body::Ack(list)).unwrap();
    script.sent(0, Role::Server, Body::NeedAck).unwrap();
    assert_violation(ViolationKind::Amplification, &script.sent(0, Role::Server, Body::NeedAck));
}

/// (Seed 11265710326427: responses to calls that its client had made before it was restarted
/// carried acks.)
#[test]
fn an_ack_in_an_unknown_session_does_not_count() {
    let mut script = amplification();
    let response = |script: &mut Script<Amplification>| {
        let (data, bytes) = piece(&script.directory, 0, Role::Server, 0, 1_000);
        let data = Data { ack: Some(Ack { client_id: id(0), server_port: 1 }), ..data };
        script.packet(SERVER, 0, Role::Server, Body::Data(data, &bytes), Flags::SESSION, false)
    };
    let (data, bytes) = piece(&script.directory, 0, Role::Client, 0, 1_000);
    script.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    response(&mut script).unwrap();
    (0..2).for_each(|_| script.sent(0, Role::Server, Body::NeedAck).unwrap());
    // (Seed 8200013: its answer to a packet about a call of its earlier life had repeated the
    // session.)
    for answer in [Body::RpcUnknown, Body::Ack(AckList::EMPTY)] {
        script.packet(SERVER, 0, Role::Client, answer, Flags::SESSION, true).unwrap();
        response(&mut script).unwrap();
        (0..2).for_each(|_| script.sent(0, Role::Server, Body::NeedAck).unwrap());
    }
    let resend = Body::Resend(Resend::everything(7));
    script.packet(SERVER, 0, Role::Client, resend, Flags::SESSION, true).unwrap();
    response(&mut script).unwrap();
    script.sent(0, Role::Server, Body::NeedAck).unwrap();
    assert_violation(ViolationKind::Amplification, &script.sent(0, Role::Server, Body::NeedAck));
}
