//! Does each checker let a good trace pass and report a bad one?
//!
//! Traces are made by hand: host 0 calls host 1, in the session 7.

use apus_proto::{Config, Execution, FailureKind, Live, RpcError};
use apus_wire::{
    Ack, AckList, Body, DATA_HEADER_LEN, Data, Dialect, Flags, Grant, HEADER_LEN, Header, Packet,
    Resend, Role, SenderId, UdpFields,
};
use bytes::Bytes;

use super::Checker;
use super::amplification::Amplification;
use super::content::Content;
use super::execution::ExecutionChecker;
use super::incoming::Incoming;
use super::liveness::Liveness;
use super::memory;
use super::order::Order;
use super::permission::Permission;
use crate::call::{Answer, Call};
use crate::directory::Directory;
use crate::payload::payload;
use crate::scenario::Scenario;
use crate::seen::{CallId, Seen, What, Wire};
use crate::violation::{Kind, Violation};
use apus_sim::fabric::Settings;
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_sim::preset;
use apus_sim::topology::Shape;
use apus_workload::time::MILLISECOND;

const CLIENT: HostId = 0;
const SERVER: HostId = 1;
const SESSION: u32 = 7;

/// Calls with requests and responses of these lengths.
fn directory(lengths: &[(u32, u32)], config: Config) -> Directory {
    let mut topology = preset::sigcomm18();
    topology.shape = Shape { racks: 1, hosts_per_rack: 3, spines: 0 };
    let call = |&(request, response): &(u32, u32)| Call {
        from: CLIENT,
        to: SERVER,
        at: 0,
        request,
        response,
        service: 0,
        answer: Answer::Reply,
        cancel: None,
        deadline: Some(MILLISECOND),
        idempotent: false,
    };
    let scenario = Scenario {
        kernel_hosts: Vec::new(),
        seed: 0,
        config,
        fabric: Settings::new(topology, 0),
        packet_limit: 1_472,
        knows_rate: true,
        takes_late: false,
        calls: lengths.iter().map(call).collect(),
        sizes: String::new(),
        faults: fault::Settings::default(),
        outages: Outages::default(),
        heal_at: 0,
    };
    let mut directory = Directory::new(scenario);
    for call in 0..lengths.len() as CallId {
        directory.name(call, id(call));
    }
    directory
}

fn id(call: CallId) -> u64 {
    1_000 + 2 * u64::from(call)
}

/// A checker, and what it is shown.
struct Tale<C> {
    directory: Directory,
    checker: C,
    at: u64,
    /// What packets name.
    session: u32,
}

impl<C: Checker> Tale<C> {
    fn new(lengths: &[(u32, u32)], config: Config, checker: impl FnOnce(&Directory) -> C) -> Self {
        let directory = directory(lengths, config);
        Self { checker: checker(&directory), directory, at: 0, session: SESSION }
    }

    fn see(&mut self, host: HostId, what: What<'_>) -> Result<(), Violation> {
        self.at += 1;
        let seen = Seen { at: self.at, host, what };
        self.checker.see(&self.directory, &seen)
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
        let fields = UdpFields { flags, incarnation: self.session, low_water: 0 };
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
        let wire = Wire { peer, call: Some(call), sender, packet: &packet, len, place: 0 };
        self.see(host, if is_sent { What::Sent(wire) } else { What::Received(wire) })
    }

    /// The sender hands a packet over.
    fn sent(&mut self, call: CallId, sender: Role, body: Body<'_>) -> Result<(), Violation> {
        let host = if sender == Role::Client { CLIENT } else { SERVER };
        self.packet(host, call, sender, body, Flags::SESSION, true)
    }

    /// The other end gets it.
    fn received(&mut self, call: CallId, sender: Role, body: Body<'_>) -> Result<(), Violation> {
        let host = if sender == Role::Client { SERVER } else { CLIENT };
        self.packet(host, call, sender, body, Flags::SESSION, false)
    }
}

/// A piece of what `sender` says, and its header.
fn piece(
    directory: &Directory,
    call: CallId,
    sender: Role,
    offset: u32,
    bytes: usize,
) -> (Data, Bytes) {
    let planned = directory.call(call);
    let length = if sender == Role::Client { planned.request } else { planned.response };
    let whole = payload(call, sender, length as usize);
    let data = Data {
        message_length: length,
        incoming: 1_000.min(length),
        ack: None,
        cutoff_version: 0,
        retransmit: false,
        offset,
        offset_in_sequence: false,
    };
    (data, whole.slice(offset as usize..offset as usize + bytes))
}

/// That a checker has found something of its kind.
fn finds(kind: Kind, result: &Result<(), Violation>) {
    assert_eq!(result.as_ref().unwrap_err().kind, kind);
}

fn grant(offset: u32) -> Body<'static> {
    Body::Grant(Grant { offset, priority: 0 })
}

fn executions() -> Tale<ExecutionChecker> {
    Tale::new(&[(10, 10)], Config::default(), |_| ExecutionChecker::new(1))
}

#[test]
fn a_call_is_executed_once_and_answered_once() {
    let mut tale = executions();
    tale.see(CLIENT, What::Called(0)).unwrap();
    tale.see(SERVER, What::Requested(Some(0), b"")).unwrap();
    tale.see(SERVER, What::Replied(0)).unwrap();
    tale.see(CLIENT, What::Responded(0, b"")).unwrap();
    finds(Kind::Execution, &tale.see(CLIENT, What::Responded(0, b"")));
    finds(Kind::Execution, &tale.see(SERVER, What::Requested(Some(0), b"")));
    finds(Kind::Execution, &tale.see(SERVER, What::Requested(None, b"")));
}

#[test]
fn a_response_needs_a_reply_and_an_end_is_the_end() {
    let mut tale = executions();
    tale.see(CLIENT, What::Called(0)).unwrap();
    finds(Kind::Execution, &tale.see(CLIENT, What::Responded(0, b"")));
    let mut tale = executions();
    tale.see(CLIENT, What::Called(0)).unwrap();
    tale.see(CLIENT, What::Cancelled(0)).unwrap();
    let error = RpcError { kind: FailureKind::Cancelled, execution: Execution::Unknown };
    finds(Kind::Execution, &tale.see(CLIENT, What::Failed(0, error)));
}

#[test]
fn a_failed_call_must_not_lie() {
    for (outcome, executed, lies) in [
        (Execution::NotExecuted, false, false),
        (Execution::NotExecuted, true, true),
        (Execution::Executed, false, true),
        (Execution::Executed, true, false),
        (Execution::Unknown, true, false),
    ] {
        let mut tale = executions();
        tale.see(CLIENT, What::Called(0)).unwrap();
        if executed {
            tale.see(SERVER, What::Requested(Some(0), b"")).unwrap();
        }
        let error = RpcError { kind: FailureKind::DeadlineExceeded, execution: outcome };
        assert_eq!(tale.see(CLIENT, What::Failed(0, error)).is_err(), lies, "{outcome:?}");
    }
    let mut tale = executions();
    tale.see(CLIENT, What::Called(0)).unwrap();
    let error = RpcError { kind: FailureKind::DeadlineExceeded, execution: Execution::NotExecuted };
    tale.see(CLIENT, What::Failed(0, error)).unwrap();
    finds(Kind::Execution, &tale.see(SERVER, What::Requested(Some(0), b"")));
}

#[test]
fn bytes_in_their_place_pass_and_others_do_not() {
    let mut tale = Tale::new(&[(3_000, 10)], Config::default(), |_| Content);
    let request = payload(0, Role::Client, 3_000);
    tale.see(SERVER, What::Requested(Some(0), &request)).unwrap();
    finds(Kind::Content, &tale.see(SERVER, What::Requested(Some(0), &request[1..])));
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 100, 1_000);
    tale.sent(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    let shifted = Data { offset: 101, ..data };
    finds(Kind::Content, &tale.sent(0, Role::Client, Body::Data(shifted, &bytes)));
    let longer = Data { message_length: 3_001, ..data };
    finds(Kind::Content, &tale.sent(0, Role::Client, Body::Data(longer, &bytes)));
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 0, 1_472);
    finds(Kind::Content, &tale.sent(0, Role::Client, Body::Data(data, &bytes)));
}

#[test]
fn what_is_unscheduled_or_granted_may_leave() {
    let mut tale = Tale::new(&[(5_000, 10)], Config::default(), Permission::new);
    let send = |tale: &mut Tale<Permission>, offset, bytes, retransmit| {
        let (data, bytes) = piece(&tale.directory, 0, Role::Client, offset, bytes);
        tale.sent(0, Role::Client, Body::Data(Data { retransmit, ..data }, &bytes))
    };
    send(&mut tale, 0, 1_000, false).unwrap();
    finds(Kind::Permission, &send(&mut tale, 1_000, 500, true));
    tale.received(0, Role::Server, grant(1_400)).unwrap();
    send(&mut tale, 1_000, 1_400, false).unwrap();
    send(&mut tale, 0, 1_000, true).unwrap();
    finds(Kind::Permission, &send(&mut tale, 2_400, 100, false));
}

#[test]
fn no_packet_crosses_the_unscheduled_limit_or_skips_bytes() {
    for (offset, bytes) in [(0, 1_001), (500, 100)] {
        let mut tale = Tale::new(&[(5_000, 10)], Config::default(), Permission::new);
        let (data, bytes) = piece(&tale.directory, 0, Role::Client, offset, bytes);
        finds(Kind::Permission, &tale.sent(0, Role::Client, Body::Data(data, &bytes)));
    }
}

#[test]
fn grants_stay_within_max_incoming() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut tale = Tale::new(&[(50_000, 1), (50_000, 1)], config, Incoming::new);
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 0, 1_000);
    tale.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    tale.sent(0, Role::Server, grant(6_000)).unwrap();
    finds(Kind::Incoming, &tale.sent(0, Role::Server, grant(6_000)));
    tale.sent(1, Role::Server, grant(5_000)).unwrap();
    finds(Kind::Incoming, &tale.sent(0, Role::Server, grant(6_001)));
}

/// (Seed 66351203362267: a request that was being let go was granted once more, and counted from then on.)
#[test]
fn requests_of_a_session_that_is_over_do_not_count() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut tale = Tale::new(&[(50_000, 1), (50_000, 1)], config, Incoming::new);
    for (call, session) in [(0, SESSION), (1, SESSION + 1)] {
        tale.session = session;
        let (data, bytes) = piece(&tale.directory, call, Role::Client, 0, 1_000);
        tale.received(call, Role::Client, Body::Data(data, &bytes)).unwrap();
    }
    tale.session = SESSION;
    tale.sent(0, Role::Server, grant(6_000)).unwrap();
    tale.session = SESSION + 1;
    tale.sent(1, Role::Server, grant(10_000)).unwrap();
    finds(Kind::Incoming, &tale.sent(1, Role::Server, grant(11_001)));
}

#[test]
fn what_ended_or_fell_silent_gives_its_share_back() {
    let config = Config::builder().max_incoming(10_000).build().unwrap();
    let mut tale = Tale::new(&[(50_000, 1); 4], config, Incoming::new);
    tale.sent(0, Role::Server, grant(10_000)).unwrap();
    tale.received(0, Role::Client, Body::Ack(AckList::EMPTY)).unwrap();
    tale.sent(1, Role::Server, grant(10_000)).unwrap();
    let resend = Resend { offset: 0, length: 10_000, priority: 7, brief: false };
    tale.sent(1, Role::Server, Body::Resend(resend)).unwrap();
    tale.sent(2, Role::Server, grant(10_000)).unwrap();
    finds(Kind::Incoming, &tale.sent(3, Role::Server, grant(1)));
}

/// Two requests that may leave at once, of which the second is shorter.
fn order(fraction: u64) -> Tale<Order> {
    let config = Config::builder().pacer_fifo_fraction(fraction).build().unwrap();
    let mut tale = Tale::new(&[(50_000, 1), (5_000, 1)], config, Order::new);
    tale.see(CLIENT, What::Called(0)).unwrap();
    tale.see(CLIENT, What::Called(1)).unwrap();
    tale
}

#[test]
fn the_shortest_goes_first_unless_the_oldest_has_its_share() {
    let send = |tale: &mut Tale<Order>, call| {
        let (data, bytes) = piece(&tale.directory, call, Role::Client, 0, 1_000);
        tale.sent(call, Role::Client, Body::Data(data, &bytes))
    };
    send(&mut order(0), 1).unwrap();
    finds(Kind::Order, &send(&mut order(0), 0));
    send(&mut order(50), 0).unwrap();
    let mut tale = order(0);
    let response = piece(&tale.directory, 1, Role::Server, 0, 1);
    tale.received(1, Role::Server, Body::Data(response.0, &response.1)).unwrap();
    send(&mut tale, 0).unwrap();
}

#[test]
fn the_oldest_gets_no_more_than_its_share() {
    let mut tale = order(50);
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 0, 1_000);
    let unscheduled = Data { incoming: 50_000, ..data };
    let mut send = |_| tale.sent(0, Role::Client, Body::Data(unscheduled, &bytes));
    let allowed = (0..100).take_while(|turn| send(*turn).is_ok()).count();
    assert!((4..8).contains(&allowed), "what a burst earns, and a packet: {allowed}");
}

#[test]
fn calls_end_in_time() {
    let mut tale = Tale::new(&[(10, 10), (10, 10)], Config::default(), |d| Liveness::new(d, 1));
    tale.see(CLIENT, What::Waiting(0)).unwrap();
    finds(Kind::Liveness, &tale.checker.check_ends(&tale.directory, 5));
    tale.see(CLIENT, What::Called(0)).unwrap();
    finds(Kind::Liveness, &tale.checker.check_ends(&tale.directory, 5));
    tale.see(CLIENT, What::Responded(0, b"")).unwrap();
    tale.checker.check_ends(&tale.directory, 5).unwrap();
    assert_eq!(tale.checker.open(), 0);
    tale.see(CLIENT, What::Called(1)).unwrap();
    let error = RpcError { kind: FailureKind::PeerRestarted, execution: Execution::Unknown };
    finds(Kind::Liveness, &tale.see(CLIENT, What::Failed(1, error)));
}

#[test]
fn deadlines_are_kept_and_the_dead_owe_nothing() {
    let mut tale = Tale::new(&[(10, 10)], Config::default(), |d| Liveness::new(d, 1));
    tale.see(CLIENT, What::Called(0)).unwrap();
    tale.at = 2 * MILLISECOND;
    finds(Kind::Liveness, &tale.see(CLIENT, What::Responded(0, b"")));
    let mut tale = Tale::new(&[(10, 10)], Config::default(), |d| Liveness::new(d, 1));
    tale.see(CLIENT, What::Called(0)).unwrap();
    tale.see(CLIENT, What::Crashed).unwrap();
    tale.checker.check_ends(&tale.directory, 5).unwrap();
}

#[test]
fn nothing_is_left_but_peers() {
    let mut live = Live::default();
    live.peers = 3;
    memory::check(0, &live, false).unwrap();
    finds(Kind::Memory, &memory::check(0, &live, true));
    live.send_bytes = 1;
    finds(Kind::Memory, &memory::check(0, &live, false));
}

fn amplification() -> Tale<Amplification> {
    Tale::new(&[(3_000, 3_000)], Config::default(), Amplification::new)
}

#[test]
fn a_stranger_gets_three_times_what_it_sent() {
    let mut tale = amplification();
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 0, 1);
    tale.packet(SERVER, 0, Role::Client, Body::Data(data, &bytes), Flags::NONE, false).unwrap();
    // 85 bytes have come. Each question has 56.
    let ask = |tale: &mut Tale<Amplification>| {
        let flags = Flags::SESSION.with(Flags::CONFIRM);
        tale.packet(SERVER, 0, Role::Server, Body::NeedAck, flags, true)
    };
    (0..4).for_each(|_| ask(&mut tale).unwrap());
    finds(Kind::Amplification, &ask(&mut tale));
    tale.received(0, Role::Client, Body::Busy).unwrap();
    let (data, bytes) = piece(&tale.directory, 0, Role::Server, 0, 1_000);
    tale.sent(0, Role::Server, Body::Data(data, &bytes)).unwrap();
}

#[test]
fn questions_and_answers_are_bounded() {
    let mut tale = amplification();
    tale.sent(0, Role::Client, Body::Busy).unwrap_err();
    let mut tale = amplification();
    let mut resend = |_| tale.sent(0, Role::Client, Body::Resend(Resend::everything(7)));
    assert_eq!((0..1_000).take_while(|turn| resend(*turn).is_ok()).count(), 128);
    let mut tale = amplification();
    tale.received(0, Role::Client, Body::Busy).unwrap();
    // It has shown no session that was proposed; only these questions are of interest here.
    tale.packet(SERVER, 0, Role::Server, Body::NeedAck, Flags::SESSION, true).unwrap();
    tale.received(0, Role::Client, Body::Busy).unwrap();
    let mut ask = |_| tale.sent(0, Role::Server, Body::NeedAck);
    let asked = (0..100).take_while(|turn| ask(*turn).is_ok()).count();
    assert!((10..30).contains(&asked), "{asked}");
}

#[test]
fn an_acknowledged_response_is_forgotten() {
    let mut tale = amplification();
    let (data, bytes) = piece(&tale.directory, 0, Role::Client, 0, 1_000);
    tale.received(0, Role::Client, Body::Data(data, &bytes)).unwrap();
    let mut list = AckList::EMPTY;
    list.push(Ack { client_id: id(0), server_port: 1 }).unwrap();
    tale.received(0, Role::Client, Body::Ack(list)).unwrap();
    tale.sent(0, Role::Server, Body::NeedAck).unwrap();
    finds(Kind::Amplification, &tale.sent(0, Role::Server, Body::NeedAck));
}
