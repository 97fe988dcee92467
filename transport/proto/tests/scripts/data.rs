//! DATA packets: order, loss, overlap. Source: docs/reference/homa-module.md, *Sending DATA*,
//! *Retransmitting DATA* and *Receiving DATA*.

use crate::script::run;
use insta::assert_snapshot;

/// HM `homa_outgoing.c` `homa_message_out_fill`: everything unscheduled leaves at once, cut at
/// packet boundaries.
#[test]
fn a_message_of_several_packets() {
    assert_snapshot!(run("
        meet P
        call P 5000
    "), @"
    > call P 5000
      -> P DATA c1 0..5000/5000 packets=4 cutoffs=1 prio=5
    ");
}

/// PRIO-2, HM `homa_outgoing.c` `homa_message_out_fill`: a packet ends exactly at the unscheduled
/// limit, and `incoming` names that limit for good.
#[test]
fn the_unscheduled_limit() {
    assert_snapshot!(run("
        config unsched_bytes=3000 unsched_bytes_min=3000 unsched_bytes_max=3000
        meet P
        call P 10000
        P: GRANT c1 5000 level=2
        P: GRANT c1 10000 level=0
    "), @"
    > call P 10000
      -> P DATA c1 0..3000/10000 incoming=3000 packets=3 cutoffs=1 prio=5
    > P: GRANT c1 5000 level=2
      -> P DATA c1 3000..5792/10000 incoming=3000 packets=2 cutoffs=1 prio=2
    > P: GRANT c1 10000 level=0
      -> P DATA c1 5792..10000/10000 incoming=3000 packets=4 cutoffs=1 prio=0
    ");
}

/// RPC-15, HM `homa_incoming.c` `homa_dispatch_pkts`: a server takes the packets of a request in
/// any order, the first one need not be at 0.
#[test]
fn a_request_in_any_order() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 2000..3000/3000
        P: DATA s1 0..1000/3000
        P: DATA s1 1000..2000/3000
    "), @"
    > P: DATA s1 2000..3000/3000
    > P: DATA s1 0..1000/3000
    > P: DATA s1 1000..2000/3000
      !! request s1 from P: 3000 B
    ");
}

/// BAD-8, HM `homa_incoming.c` `homa_dispatch_pkts`: a client drops a response that it does not
/// expect.
#[test]
fn a_response_to_an_unknown_call() {
    assert_snapshot!(run("
        meet P
        P: DATA c1 0..100/100
        Q: DATA c1 0..100/100
    "), @"
    > P: DATA c1 0..100/100
      xx unknown_rpcs
    > Q: DATA c1 0..100/100
      xx unknown_rpcs
    ");
}

/// RPC-16, HM `homa_incoming.c` `homa_add_packet`: duplicates have no effect and are counted.
/// Overlaps are trimmed (chosen by us, docs/reference/homa-module.md, *Known holes*).
#[test]
fn duplicates_and_overlaps() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..1000/3000
        P: DATA s1 0..1000/3000
        P: DATA s1 500..1500/3000 retransmit
        P: DATA s1 200..300/3000 retransmit
        count resent_packets_used resent_discards
        P: DATA s1 1200..3000/3000
    "), @"
    > P: DATA s1 0..1000/3000
    > P: DATA s1 0..1000/3000
      xx duplicate_packets
    > P: DATA s1 500..1500/3000 retransmit
    > P: DATA s1 200..300/3000 retransmit
      xx duplicate_packets
    > count resent_packets_used resent_discards
      resent_packets_used=1
      resent_discards=1
    > P: DATA s1 1200..3000/3000
      !! request s1 from P: 3000 B
    ");
}

/// RPC-17, HM `homa_incoming.c` `homa_message_in_init`: the length is fixed by the first packet.
#[test]
fn packets_that_disagree_about_the_length() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..1000/3000
        P: DATA s1 1000..2000/2000
        P: DATA s1 1000..3000/3000
    "), @"
    > P: DATA s1 0..1000/3000
    > P: DATA s1 1000..2000/2000
      xx length_mismatches
    > P: DATA s1 1000..3000/3000
      !! request s1 from P: 3000 B
    ");
}

/// CAP-7, HM `homa_incoming.c` `homa_message_in_init`: too long to be received. The request is
/// refused, and a duplicate will not be executed either.
#[test]
fn a_request_that_is_too_long() {
    assert_snapshot!(run("
        config max_message=2000
        meet P
        P: DATA s1 0..1000/2001
        P: DATA s1 0..1000/2000
    "), @"
    > P: DATA s1 0..1000/2001
      xx too_large
      -> P RPC_UNKNOWN s1 +REFUSED(TooLarge) prio=7
    > P: DATA s1 0..1000/2000
      xx finished
    ");
}

/// A response that is too long: the call fails, the server may forget it.
#[test]
fn a_response_that_is_too_long() {
    assert_snapshot!(run("
        config max_message=2000
        meet P
        call P 10
        P: DATA c1 0..1000/2001
        P: DATA c1 0..1000/2001
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..1000/2001
      xx too_large
      !! failed c1: the response has 2001 bytes, max_message is 2000 here; the request was executed, its response is lost
      -> P ACK c1 prio=7
    > P: DATA c1 0..1000/2001
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-9, WIRE-19, HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`: each DATA packet takes one ack
/// along, of a burst only the first packet.
#[test]
fn acks_ride_on_data() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        call P 10
        P: DATA c1 0..10/10
        P: DATA c2 0..10/10
        P: DATA c3 0..10/10
        call P 5000
        call P 10
        call P 10
        call P 10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > P: DATA c3 0..10/10
      !! response c3: 10 B
    > call P 5000
      -> P DATA c4 0..5000/5000 packets=4 cutoffs=1 ack=c1 prio=5
    > call P 10
      -> P DATA c5 0..10/10 cutoffs=1 ack=c2 prio=7
    > call P 10
      -> P DATA c6 0..10/10 cutoffs=1 ack=c3 prio=7
    > call P 10
      -> P DATA c7 0..10/10 cutoffs=1 prio=7
    ");
}

/// CAP-8, RPC-11, HM `homa_incoming.c` `homa_data_pkt`: without room the data is dropped, and its
/// ack counts nevertheless.
#[test]
fn no_room_for_a_request() {
    assert_snapshot!(run("
        config max_message=10000 max_receive_bytes=10000 max_receive_bytes_per_peer=10000
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: DATA s2 0..1000/9000
        P: DATA s3 0..1000/2000 ack=s1
        live
        P: DATA s2 1000..9000/9000
        P: DATA s3 0..1000/2000
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: DATA s2 0..1000/9000
    > P: DATA s3 0..1000/2000 ack=s1
      xx no_buffers
    > live
      clients=0 servers=1 peers=1 send=0 receive=9000 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > P: DATA s2 1000..9000/9000
      !! request s2 from P: 9000 B
    > P: DATA s3 0..1000/2000
    ");
}

/// HM `homa_incoming.c` `homa_data_pkt` for a response: it is requested again, and the server does
/// not count as silent.
#[test]
fn no_room_for_a_response() {
    assert_snapshot!(run("
        config max_message=10000 max_receive_bytes=10000 max_receive_bytes_per_peer=10000
        meet P
        call P 10
        P: DATA s1 0..1000/9500
        P: DATA c1 0..1000/2000
        +6ms
        P: DATA s1 1000..9500/9500
        P: DATA c1 0..2000/2000
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA s1 0..1000/9500
    > P: DATA c1 0..1000/2000
      xx no_buffers
    > +6ms
      @5.00ms -> P RESEND c1 everything prio=7
      @5.00ms -> P RESEND s1 1000..9500 prio=7
    > P: DATA s1 1000..9500/9500
      !! request s1 from P: 9500 B
    > P: DATA c1 0..2000/2000
      !! response c1: 2000 B
    ");
}

/// A message whose size is a packet, a byte less, a byte more.
#[test]
fn boundaries_of_one_packet() {
    assert_snapshot!(run("
        meet P
        call P 1395
        call P 1396
        call P 1397
    "), @"
    > call P 1395
      -> P DATA c1 0..1395/1395 cutoffs=1 prio=6
    > call P 1396
      -> P DATA c2 0..1396/1396 cutoffs=1 prio=6
    > call P 1397
      -> P DATA c3 0..1397/1397 packets=2 cutoffs=1 prio=6
    ");
}

/// WIRE-25: a longer path MTU means longer packets, also for bytes that have not left yet.
#[test]
fn packet_limits() {
    assert_snapshot!(run("
        meet P
        limit P 8972
        call P 20000
        limit P 100
        call P 2000
        limit Q 9000
    "), @"
    > limit P 8972
    > call P 20000
      -> P DATA c1 0..10000/20000 incoming=10000 packets=2 cutoffs=1 prio=4
    > limit P 100
    > call P 2000
      -> P DATA c2 0..2000/2000 packets=2 cutoffs=1 prio=6
    > limit Q 9000
    ");
}

/// WIRE-29: a peer that states its room reads several packets of a datagram; DATA that continues
/// elsewhere shares none.
#[test]
fn packets_share_datagrams_to_peers_that_read_them() {
    assert_snapshot!(run("
        meet P
        call P 100
        P: CUTOFFS c1 1 room=1000000
        call P 100
        call P 3000
        P: GRANT c9 1
        P: RESEND c2 0..100
        P: CUTOFFS c1 1
        call P 100
    "), @"
    > call P 100
      -> P DATA c1 0..100/100 cutoffs=1 prio=7
    > P: CUTOFFS c1 1 room=1000000
    > call P 100
      -> P DATA c2 0..100/100 cutoffs=1 prio=7 shares=1452
    > call P 3000
      -> P DATA c3 0..3000/3000 packets=3 cutoffs=1 prio=5
    > P: GRANT c9 1
      xx unknown_rpcs
    > P: RESEND c2 0..100
      -> P BUSY c2 prio=7 shares=1452
    > P: CUTOFFS c1 1
    > call P 100
      -> P DATA c4 0..100/100 cutoffs=1 prio=7
    ");
}

/// WIRE-29: each packet of a datagram is handled, up to the first that is wrong.
#[test]
fn all_packets_of_a_datagram_are_handled() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA s1 0..100/100 & DATA c1 0..10/10 & DATA s2 0..7/7
        P: DATA s4 0..10/10 & GRANT c1 10 level=9 & DATA s5 0..10/10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA s1 0..100/100 & DATA c1 0..10/10 & DATA s2 0..7/7
      !! request s1 from P: 100 B
      !! response c1: 10 B
      !! request s2 from P: 7 B
    > P: DATA s4 0..10/10 & GRANT c1 10 level=9 & DATA s5 0..10/10
      xx malformed
      !! request s4 from P: 10 B
    ");
}
