//! Packets that nobody should send: each has a defined outcome. Requirement BAD-1 to BAD-5.

use crate::script::run;
use insta::assert_snapshot;

/// BAD-1, rows P-22: too short, unknown type, unknown version, garbage.
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
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// BAD-2: lengths that lie: past the end, no data, no message.
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
      xx malformed
    > P: DATA s1 0..0/10
      xx malformed
    > P: DATA s1 0..10/0
      xx malformed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
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
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// BAD-3: the wrong end speaks.
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
      xx wrong_role
    > live
      clients=1 servers=0 peers=1 send=10 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// BAD-4, BAD-5: control packets of strangers about nothing: one short answer at most, and no memory.
#[test]
fn strangers_that_ask_about_nothing() {
    assert_snapshot!(run("
        P: GRANT c1 10 level=0
        P: RESEND c1 everything
        P: RESEND s1 everything
        P: RPC_UNKNOWN c1
        P: BUSY s1
        P: BUSY s1 +CONFIRM
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
      -> P RPC_UNKNOWN c?1 new prio=7
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > P: RPC_UNKNOWN c1
      xx unknown_rpcs
    > P: BUSY s1
      xx unknown_rpcs
    > P: BUSY s1 +CONFIRM
      xx unknown_rpcs
    > P: CUTOFFS c1 3
      xx unknown_rpcs
    > P: FREEZE c1
    > P: NEED_ACK c1
      -> P ACK c?1 new prio=7
    > P: NEED_ACK c1 +CONFIRM
      -> P ACK c?1 new prio=7
    > P: ACK s1
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
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
      clients=0 servers=0 peers=1 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// A stranger takes back its only request with a packet of that request: nothing is left of it, and
/// nothing of it is looked at afterwards. (The handler used to announce cutoffs to the peer that the
/// acknowledgment had just removed: two packets ended the process.)
#[test]
fn a_stranger_that_disowns_its_request_with_its_own_data() {
    assert_snapshot!(run("
        P: DATA s1 0..10/20 cutoffs=0
        P: DATA s1 0..10/20 ack=s1 cutoffs=0 inc=80
        live
    "), @"
    > P: DATA s1 0..10/20 cutoffs=0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/20 ack=s1 cutoffs=0 inc=80
      xx duplicate_packets
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 unconfirmed=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// The same for a peer that is only known because a call to it found no room.
#[test]
fn a_known_stranger_whose_request_finds_no_room() {
    assert_snapshot!(run("
        config max_unconfirmed_rpcs=1 max_message=1000 max_send_bytes_per_peer=1000 max_send_bytes=1000
        meet R
        call R 600
        call P 600
        Q: DATA s1 0..10/10
        P: DATA s1 0..10/10 cutoffs=0
    "), @"
    > call R 600
      -> R DATA c1 0..600/600 cutoffs=1 prio=6
    > call P 600
      = max_send_bytes is reached; wait until earlier messages have left
    > Q: DATA s1 0..10/10
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10 cutoffs=0
      xx too_many_unconfirmed
    ");
}
