//! Packets that no peer should send: each has a defined outcome. Requirement BAD-1 to BAD-5.

use crate::script::run;
use apus_proto::{Config, Datagram, DropReason, Instant, Live, Transport};
use insta::assert_snapshot;
use std::fmt::Write;

/// BAD-1, HM `homa_plumbing.c` `homa_softirq`: too short, unknown type, unknown version, garbage.
#[test]
fn bytes_that_are_no_packet() {
    assert_snapshot!(run("
        P: raw 00
        P: raw
        P: raw 00500001000000000000001050100000000000000000000000000002
        P: raw 0050000100000000000000195010000000000000000000000000000200
        P: raw 0050000100000000000000145020000000000000000000000000000200
        P: raw ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
        live
    "), @"
    > P: raw 00
      xx short_packets
    > P: raw
      xx short_packets
    > P: raw 00500001000000000000001050100000000000000000000000000002
      xx short_packets
    > P: raw 0050000100000000000000195010000000000000000000000000000200
      xx unknown_packet_types
    > P: raw 0050000100000000000000145020000000000000000000000000000200
      xx unknown_versions
    > P: raw ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
      xx unknown_versions
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// BAD-2, WIRE-29: lengths that lie: past the end, no data, an empty message with bytes behind it.
#[test]
fn lengths_that_lie() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 5..15/10
        P: DATA s1 0..0/10
        P: DATA s1 0..10/0
        live
    "), @"
    > P: DATA s1 5..15/10
      xx short_packets
    > P: DATA s1 0..0/10
      xx malformed
    > P: DATA s1 0..10/0
      xx short_packets
      xx length_mismatches
    > live
      clients=0 servers=1 peers=1 send=0 receive=10 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// WIRE-4, BAD-3: a port that is not ours.
#[test]
fn another_port() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10 dport=9
        P: NEED_ACK c1 dport=9
        live
    "), @"
    > P: DATA s1 0..10/10 dport=9
      xx wrong_port
    > P: NEED_ACK c1 dport=9
      xx wrong_port
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// BAD-3: packets of the wrong end.
#[test]
fn wrong_roles() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: ACK c1
        P: NEED_ACK s1
        P: BUSY c1 +CONFIRM
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: ACK c1
      xx wrong_role
    > P: NEED_ACK s1
      xx wrong_role
    > P: BUSY c1 +CONFIRM
    > live
      clients=1 servers=0 peers=1 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// BAD-4, BAD-5: control packets of unknown clients about unknown RPCs: one short answer at most,
/// and no memory.
#[test]
fn unknown_clients_that_ask_about_nothing() {
    assert_snapshot!(run("
        P: GRANT c1 10 level=0
        P: RESEND c1 everything
        P: RESEND s1 everything
        P: RPC_UNKNOWN c1
        P: BUSY s1
        P: CUTOFFS c1 3
        P: FREEZE c1
        P: NEED_ACK c1
        P: NEED_ACK c1 +CONFIRM
        P: ACK s1
        live
    "), @"
    > P: GRANT c1 10 level=0
      xx unknown_rpcs
    > P: RESEND c1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN c?1 prio=7
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > P: RPC_UNKNOWN c1
      xx unknown_rpcs
    > P: BUSY s1
      xx unknown_rpcs
    > P: CUTOFFS c1 3
      xx unknown_rpcs
    > P: FREEZE c1
      xx unknown_rpcs
    > P: NEED_ACK c1
      xx stale_sessions
    > P: NEED_ACK c1 +CONFIRM
      xx unknown_rpcs
    > P: ACK s1
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// BAD-6: a flood of requests that never complete is bounded and ends.
#[test]
fn requests_that_never_complete() {
    assert_snapshot!(run("
        config timeout_usecs=20000 max_server_rpcs=3
        meet P
        P: DATA s1 0..1/1000
        P: DATA s2 0..1/1000
        P: DATA s3 0..1/1000
        P: DATA s4 0..1/1000
        +100ms
        live
    "), @"
    > P: DATA s1 0..1/1000
    > P: DATA s2 0..1/1000
    > P: DATA s3 0..1/1000
    > P: DATA s4 0..1/1000
      xx too_many_rpcs
      -> P RPC_UNKNOWN s4 +REFUSED(Overloaded) prio=7
    > +100ms
      @5.00ms -> P RESEND s1 1..1000 prio=7
      @5.00ms -> P RESEND s2 1..1000 prio=7
      @5.00ms -> P RESEND s3 1..1000 prio=7
      @10.00ms -> P RESEND s1 1..1000 prio=7
      @10.00ms -> P RESEND s2 1..1000 prio=7
      @10.00ms -> P RESEND s3 1..1000 prio=7
      @15.00ms -> P RESEND s1 1..1000 prio=7
      @15.00ms -> P RESEND s2 1..1000 prio=7
      @15.00ms -> P RESEND s3 1..1000 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// An unknown client acknowledges its own request: no state of it remains.
#[test]
fn an_unknown_client_that_disowns_its_request_with_its_own_data() {
    assert_snapshot!(run("
        P: DATA s1 0..10/20 cutoffs=0
        P: DATA s1 0..10/20 ack=s1 cutoffs=0 inc=80
        live
    "), @"
    > P: DATA s1 0..10/20 cutoffs=0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/20 ack=s1 cutoffs=0 inc=80
      -> P NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// Ids of others: RPCs with Q are none of P's business, whatever ids P names. (Request 5001 of P
/// has the same id as request 1 of Q.)
#[test]
fn ids_of_others() {
    assert_snapshot!(run("
        meet P
        meet Q
        call Q 10
        Q: DATA s1 0..10/20
        P: DATA c1 0..10/10
        P: GRANT c1 10 level=0
        P: RESEND c1 0..10
        P: RPC_UNKNOWN c1 +REFUSED=1
        P: BUSY c1
        P: NEED_ACK c1 +CONFIRM
        P: ACK s5001
        P: RPC_UNKNOWN s5001
        P: DATA s7 0..10/10 ack=s5001
        P: DATA s5001 10..20/20
        Q: DATA s1 10..20/20
        Q: DATA c1 0..10/10
    "), @"
    > call Q 10
      -> Q DATA c1 0..10/10 cutoffs=1 prio=7
    > Q: DATA s1 0..10/20
    > P: DATA c1 0..10/10
      xx unknown_rpcs
    > P: GRANT c1 10 level=0
      xx unknown_rpcs
    > P: RESEND c1 0..10
      xx unknown_rpcs
      -> P RPC_UNKNOWN c?0 prio=7
    > P: RPC_UNKNOWN c1 +REFUSED=1
      xx unknown_rpcs
    > P: BUSY c1
      xx unknown_rpcs
    > P: NEED_ACK c1 +CONFIRM
      xx unknown_rpcs
    > P: ACK s5001
      xx unknown_rpcs
    > P: RPC_UNKNOWN s5001
      xx unknown_rpcs
    > P: DATA s7 0..10/10 ack=s5001
      !! request s7 from P: 10 B
    > P: DATA s5001 10..20/20
    > Q: DATA s1 10..20/20
      !! request s1 from Q: 20 B
    > Q: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// In the kernel profile, only ids distinguish the RPCs of a client.
#[test]
fn ids_of_others_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        call Q 10
        Q: DATA s1 0..10/20
        P: DATA c1 0..10/10
        P: GRANT c1 10 level=0
        P: RPC_UNKNOWN c1
        P: ACK s5001
        P: RPC_UNKNOWN s5001
        Q: DATA s1 10..20/20
        Q: DATA c1 0..10/10
    "), @"
    > call Q 10
      -> Q DATA c1 0..10/10 prio=6
    > Q: DATA s1 0..10/20
    > P: DATA c1 0..10/10
      xx unknown_rpcs
    > P: GRANT c1 10 level=0
      xx unknown_rpcs
    > P: RPC_UNKNOWN c1
      xx unknown_rpcs
    > P: ACK s5001
      xx unknown_rpcs
    > P: RPC_UNKNOWN s5001
      xx unknown_rpcs
    > Q: DATA s1 10..20/20
      !! request s1 from Q: 20 B
    > Q: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// CAP-10. Every second byte of a message: gaps are paid for with received bytes, and filling them
/// continues.
#[test]
fn too_many_gaps() {
    let mut script = String::from("meet P\n");
    for gap in 0..6 {
        writeln!(script, "P: DATA s1 {}..{}/3000", 2 * gap + 1, 2 * gap + 2).unwrap();
    }
    script
        .push_str("P: DATA s1 0..1400/3000\nP: DATA s1 2051..2052/3000\ncount gaps_created\nlive");
    assert_snapshot!(run(&script), @"
    > P: DATA s1 1..2/3000
    > P: DATA s1 3..4/3000
    > P: DATA s1 5..6/3000
    > P: DATA s1 7..8/3000
    > P: DATA s1 9..10/3000
      xx too_many_gaps
    > P: DATA s1 11..12/3000
      xx too_many_gaps
    > P: DATA s1 0..1400/3000
    > P: DATA s1 2051..2052/3000
    > count gaps_created
      gaps_created=5
    > live
      clients=0 servers=1 peers=1 send=0 receive=3000 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// The network accepts no packets while others ask: the queued answers are bounded, and each
/// dropped one is counted.
#[test]
fn answers_that_cannot_leave() {
    let mut transport = Transport::new(Config::default(), 1, 1);
    let now = Instant::from_nanos(1);
    // RESENDs about a request that no client has made.
    let mut resend = [0; 37];
    (resend[3], resend[11], resend[13], resend[27]) = (1, 0x12, 0x10, 2);
    for n in 0..10_000_u16 {
        transport.handle_datagram(now, Datagram::new(([10, 0, 0, 9], n).into(), &resend));
    }
    let metrics = transport.metrics();
    assert_eq!(metrics.live.control_packets, 8_192);
    assert_eq!(metrics.dropped(DropReason::ControlQueueFull), 10_000 - 8_192);
    let mut sent = 0;
    while transport.poll_transmit(now).is_some() {
        sent += 1;
    }
    assert_eq!((sent, transport.metrics().live), (8_192, Live::default()));
}
