//! Notes on rare events, made for all RPCs.

use crate::pair::{MILLISECOND, Pair};
use apus_proto::probe::{ProbeFilter, ProbeKind};
use apus_proto::{Config, Datagram, Kind};
use std::net::SocketAddr;
use std::time::Duration;

/// The only note of this sort.
fn only(pair: &crate::pair::End, pick: impl Fn(&ProbeKind) -> bool) -> ProbeKind {
    let found: Vec<ProbeKind> =
        pair.notes.iter().map(|note| note.what).filter(|what| pick(what)).collect();
    assert_eq!(found.len(), 1, "{found:?} of {:?}", pair.texts());
    found[0]
}

#[test]
fn a_lost_packet_is_noted_as_a_gap_and_at_each_step_of_its_repair() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    pair.introduce();
    pair.call(10_000);
    pair.lose([2]);
    pair.settle();
    assert_eq!(pair.server.texts(), ["gap 2792+1396"]);
    assert_eq!(pair.client.texts(), [""; 0]);
    pair.run(20);
    assert_eq!(pair.client.ends, [true]);
    let server = ["gap 2792+1396", "resend_sent 2792+1396", "data_received 2792+1396 again"];
    // In the meantime the client requests the whole response.
    let told = |end: &crate::pair::End| {
        end.texts().into_iter().filter(|text| !text.ends_with("4294967295")).collect::<Vec<_>>()
    };
    assert_eq!(told(&pair.server), server);
    assert_eq!(told(&pair.client), ["resend_received 2792+1396", "data_sent 2792+1396 again"]);
}

#[test]
fn a_request_that_is_lost_as_a_whole_is_restarted() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    pair.introduce();
    pair.call(100);
    pair.lose([0]);
    pair.run(50);
    assert_eq!(pair.client.ends, [true]);
    let client =
        ["resend_sent 0+4294967295", "received RPC_UNKNOWN", "restart", "data_sent 0+100 again"];
    assert_eq!(pair.client.texts(), client);
    let server = [
        "resend_received 0+4294967295",
        "sent RPC_UNKNOWN",
        "dropped unknown_rpcs",
        "data_received 0+100 again",
    ];
    assert_eq!(pair.server.texts(), server);
}

#[test]
fn a_server_that_begins_another_life_is_noted_of_each_call_that_it_concerns() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    pair.introduce();
    let mut other = Pair::new(Some(ProbeFilter::RARE));
    // Another seed, another incarnation.
    other.server.transport = apus_proto::Transport::new(Config::default(), 2, 99);
    other.server.transport.set_probe_filter(Some(ProbeFilter::RARE));
    pair.call(100);
    std::mem::swap(&mut pair.server, &mut other.server);
    pair.run(50);
    assert_eq!(pair.client.kinds()[0], "peer_restart", "{:?}", pair.client.texts());
}

#[test]
fn failed_calls_and_packets_that_are_not_used_say_why() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    pair.introduce();
    pair.server.transport.set_serving(false);
    pair.call(100);
    pair.settle();
    assert_eq!(pair.client.ends, [false]);
    let client = ["received RPC_UNKNOWN", "failed (the server refused: not serving requests)"];
    assert_eq!(pair.client.texts(), client);
    assert_eq!(pair.server.texts(), ["sent RPC_UNKNOWN", "dropped not_serving"]);

    pair.server.notes.clear();
    let from = pair.client.address;
    pair.inject(from, b"nonsense");
    assert_eq!(pair.server.notes[0].rpc, None);
    let mut astray = pair.last(Kind::Data);
    astray[3] = 77;
    pair.inject(from, &astray);
    assert_eq!(pair.server.texts(), ["dropped short_packets", "dropped wrong_port"]);
}

#[test]
fn a_slow_call_is_noted_when_it_ends() {
    let watch = ProbeFilter { slow: Duration::from_nanos(3 * MILLISECOND), ..ProbeFilter::RARE };
    let mut pair = Pair::new(Some(watch));
    pair.introduce();
    pair.call(100);
    pair.now += Duration::from_nanos(3 * MILLISECOND - 2_000);
    pair.settle();
    assert_eq!((pair.client.texts(), pair.client.ends.len()), (vec![], 1));
    pair.call(100);
    pair.now += Duration::from_nanos(3 * MILLISECOND);
    pair.settle();
    let ProbeKind::Slow { took } = only(&pair.client, |_| true) else { panic!() };
    let nanos = took.as_nanos() as u64;
    assert!((3 * MILLISECOND..4 * MILLISECOND).contains(&nanos), "{took:?}");
    assert_eq!(pair.server.texts(), [""; 0]);
}

#[test]
fn a_message_that_the_pacer_holds_back_is_noted_once_each_time() {
    let config = Config::builder().link_mbps(100).build().unwrap();
    let mut pair = Pair::with(config, Some(ProbeFilter::RARE));
    pair.call(60_000);
    while pair.client.transport.poll_transmit(pair.now).is_some() {}
    pair.client.fetch();
    let throttled = only(&pair.client, |what| matches!(what, ProbeKind::Throttled { .. }));
    let ProbeKind::Throttled { wait } = throttled else { unreachable!() };
    let next = pair.client.transport.next_timeout().unwrap().0;
    assert_eq!(pair.now + wait, next, "when it will be asked again");
    assert!(pair.client.transport.poll_transmit(pair.now).is_none());
    pair.client.fetch();
    only(&pair.client, |what| matches!(what, ProbeKind::Throttled { .. }));
}

/// Requirement WIRE-16.
#[test]
fn a_freeze_is_believed_from_the_ends_of_a_session_only() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    let now = pair.now;
    assert_eq!(pair.client.transport.freeze_peers(now), 0, "it has no session");
    pair.introduce();
    assert_eq!(pair.client.transport.freeze_peers(pair.now), 1);
    pair.settle();
    assert_eq!(pair.client.texts(), ["sent FREEZE"]);
    assert_eq!(pair.server.texts(), ["received FREEZE"]);
    assert_eq!(pair.server.notes[0].peer, pair.client.address);
    let freeze = pair.last(Kind::Freeze);
    assert_eq!(freeze.len(), 28);

    pair.server.notes.clear();
    pair.client.notes.clear();
    assert_eq!(pair.server.transport.freeze_peers(pair.now), 1);
    pair.settle();
    assert_eq!(pair.client.texts(), ["received FREEZE"]);
    assert_eq!(pair.server.texts(), ["sent FREEZE"]);

    pair.server.notes.clear();
    let (client, unknown) = (pair.client.address, SocketAddr::from(([10, 9, 9, 9], 1)));
    pair.inject(unknown, &freeze);
    let mut forged = freeze.clone();
    // The session: bytes 13 to 16.
    forged[15] ^= 1;
    pair.inject(client, &forged);
    assert_eq!(pair.server.texts(), ["dropped unknown_rpcs", "dropped stale_sessions"]);
    pair.inject(client, &freeze);
    assert_eq!(pair.server.texts()[2], "received FREEZE");
}

/// Requirement CAP-17.
#[test]
fn notes_that_are_not_fetched_are_bounded() {
    let mut pair = Pair::new(Some(ProbeFilter::RARE));
    let from = pair.client.address;
    let now = pair.now;
    for _ in 0..10_000 {
        pair.server.transport.handle_datagram(now, Datagram::new(from, b"nonsense"));
    }
    pair.server.fetch();
    assert_eq!(pair.server.notes.len(), 8_192);
    pair.inject(from, b"nonsense");
    assert_eq!(pair.server.notes.len(), 8_193, "there is room again");
    pair.server.transport.handle_datagram(now, Datagram::new(from, b"nonsense"));
    pair.server.transport.set_probe_filter(None);
    assert_eq!(pair.server.transport.poll_probe(), None);
}
