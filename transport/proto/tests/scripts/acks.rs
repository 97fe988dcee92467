//! Notification of a server that its response has arrived. Source: HM `homa_outgoing.c`
//! `homa_tx_data_pkt_alloc`, `homa_incoming.c` `homa_ack_pkt`, `homa_peer.c` `homa_peer_add_ack`.

use crate::script::run;
use insta::assert_snapshot;

/// RPC-9, HM `homa_incoming.c` `homa_ack_pkt`, `homa_peer.c` `homa_peer_add_ack`: when five acks
/// wait, the sixth response sends them all; the header names its own.
#[test]
fn the_ack_buffer_overflows() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        call P 10
        call P 10
        call P 10
        call P 10
        call P 10
        call P 10
        P: DATA c1 0..10/10
        P: DATA c2 0..10/10
        P: DATA c3 0..10/10
        P: DATA c4 0..10/10
        P: DATA c5 0..10/10
        P: DATA c6 0..10/10
        P: DATA c7 0..10/10
        count ack_overflows
        call P 10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > call P 10
      -> P DATA c2 0..10/10 prio=6
    > call P 10
      -> P DATA c3 0..10/10 prio=6
    > call P 10
      -> P DATA c4 0..10/10 prio=6
    > call P 10
      -> P DATA c5 0..10/10 prio=6
    > call P 10
      -> P DATA c6 0..10/10 prio=6
    > call P 10
      -> P DATA c7 0..10/10 prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > P: DATA c3 0..10/10
      !! response c3: 10 B
    > P: DATA c4 0..10/10
      !! response c4: 10 B
    > P: DATA c5 0..10/10
      !! response c5: 10 B
    > P: DATA c6 0..10/10
      !! response c6: 10 B
      -> P ACK c6 c1 c2 c3 c4 c5 prio=7
    > P: DATA c7 0..10/10
      !! response c7: 10 B
    > count ack_overflows
      ack_overflows=1
    > call P 10
      -> P DATA c8 0..10/10 ack=c7 prio=6
    ");
}

/// RPC-10, HM `homa_incoming.c` `homa_ack_pkt`: the header's RPC and all that are listed are freed.
#[test]
fn an_ack_packet_frees_several_rpcs() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        P: DATA s3 0..10/10
        reply s1 10
        reply s2 10
        reply s3 10
        P: ACK s1 s2 s3
        live
        P: ACK s1 s2
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > reply s2 10
      -> P DATA s2 0..10/10 cutoffs=1 prio=7
    > reply s3 10
      -> P DATA s3 0..10/10 cutoffs=1 prio=7
    > P: ACK s1 s2 s3
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: ACK s1 s2
      xx unknown_rpcs
    ");
}

/// HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`: so does an ack that rides on a request.
#[test]
fn a_piggy_backed_ack() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: DATA s2 0..10/10 ack=s1
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: DATA s2 0..10/10 ack=s1
      !! request s2 from P: 10 B
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-11, HM `homa_incoming.c` `homa_dispatch_pkts`: the data is queued before its ack is handled;
/// its event is first.
#[test]
fn the_ack_is_handled_after_the_data() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10 ack=s1
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/10 ack=s1
      !! request s2 from P: 10 B
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-10: an ACK for a request that is still in flight, or in service: the client no longer needs
/// it.
#[test]
fn a_client_that_gives_up() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/20
        P: DATA s2 0..10/10
        P: ACK s1 s2
        live
        reply s2 10
        P: DATA s1 0..20/20
    "), @"
    > P: DATA s1 0..10/20
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > P: ACK s1 s2
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s2 10
      = the RPC has ended
    > P: DATA s1 0..20/20
      xx finished
    ");
}

/// RPC-18: an ack that finds no DATA to carry it leaves before the server would ask for it. (It
/// used to wait for the question; a process that ended lost it, and the kernel's server asked
/// without end.)
#[test]
fn an_idle_client_acknowledges_by_itself() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        call P 10
        call P 10
        P: DATA c1 0..10/10
        P: DATA c2 0..10/10
        +900us
        P: DATA c3 0..10/10
        +10ms
        P: NEED_ACK c1
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > call P 10
      -> P DATA c2 0..10/10 prio=6
    > call P 10
      -> P DATA c3 0..10/10 prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > +900us
    > P: DATA c3 0..10/10
      !! response c3: 10 B
    > +10ms
      @0.10ms -> P ACK c1 c2 c3 prio=7
    > P: NEED_ACK c1
      -> P ACK c1 prio=7
    ");
}

/// RPC-18: a busy client sends no packet more than before: acks ride on its requests. An ack that
/// has waited for a millisecond takes the younger ones along.
#[test]
fn acks_of_a_busy_client_ride() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA c1 0..10/10
        +600us
        call P 10
        P: DATA c2 0..10/10
        +600us
        call P 10
        P: DATA c3 0..10/10
        call P 10
        +600us
        P: DATA c4 0..10/10
        +3ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > +600us
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 ack=c1 prio=7
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > +600us
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 ack=c2 prio=7
    > P: DATA c3 0..10/10
      !! response c3: 10 B
    > call P 10
      -> P DATA c4 0..10/10 cutoffs=1 ack=c3 prio=7
    > +600us
    > P: DATA c4 0..10/10
      !! response c4: 10 B
    > +3ms
      @1.00ms -> P ACK c4 prio=7
    ");
}

/// RPC-18: no peer must ask an endpoint that has shut down.
#[test]
fn an_endpoint_that_shuts_down_acknowledges() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        call P 10
        call Q 10
        call Q 10
        P: DATA c1 0..10/10
        P: DATA c2 0..10/10
        Q: DATA c3 0..10/10
        shutdown
        +10ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > call P 10
      -> P DATA c2 0..10/10 prio=6
    > call Q 10
      -> Q DATA c3 0..10/10 prio=6
    > call Q 10
      -> Q DATA c4 0..10/10 prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > Q: DATA c3 0..10/10
      !! response c3: 10 B
    > shutdown
      !! failed c4: endpoint shut down; the request may have been executed
      -> Q ACK c4 prio=7
      -> P ACK c1 c2 prio=7
      -> Q ACK c3 prio=7
    > +10ms
    ");
}
