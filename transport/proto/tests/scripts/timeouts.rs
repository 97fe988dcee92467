//! Silence until the end: abort, NEED_ACK, vanished clients. Source: HM `homa_timer.c`
//! `homa_timer_check_rpc`, `homa_incoming.c` `homa_need_ack_pkt`.

use crate::script::run;
use insta::assert_snapshot;

/// TIME-4, HM `homa_timer.c` `homa_timer_check_rpc`: the peer does not answer requests: the call
/// fails, with its execution status.
#[test]
fn a_dead_server() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        call P 10
        +40ms
        live
        count rpc_timeouts
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +40ms
      @5.00ms -> P RESEND c1 everything prio=7
      @10.00ms -> P RESEND c1 everything prio=7
      @15.00ms -> P RESEND c1 everything prio=7
      @20.00ms !! failed c1: peer silent for 20 ms after 3 resends; the request may have been executed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > count rpc_timeouts
      rpc_timeouts=1
    ");
}

/// TIME-16: the ticks of an endpoint start with its first call, not with its clock.
#[test]
fn endpoints_do_not_ask_in_step() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        +1700us
        call P 10
        +6ms
    "), @"
    > +1700us
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +6ms
      @5.00ms -> P RESEND c1 everything prio=7
    ");
}

/// AMO-5: a server that never asked for confirmation cannot have executed any request.
#[test]
fn a_server_that_never_was_there() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        call P 10
        +40ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > +40ms
      @5.00ms -> P RESEND c1 everything new prio=7
      @10.00ms -> P RESEND c1 everything new prio=7
      @15.00ms -> P RESEND c1 everything new prio=7
      @20.00ms !! failed c1: peer silent for 20 ms after 3 resends; the request was not executed
    ");
}

/// AMO-5: the response had started.
#[test]
fn a_server_that_dies_while_it_responds() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        call P 10
        P: DATA c1 0..1000/3000
        +40ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..1000/3000
    > +40ms
      @5.00ms -> P RESEND c1 1000..3000 prio=7
      @10.00ms -> P RESEND c1 1000..3000 prio=7
      @15.00ms -> P RESEND c1 1000..3000 prio=7
      @20.00ms !! failed c1: peer silent for 20 ms after 3 resends; the request was executed, its response is lost
    ");
}

/// TIME-4: a process that was stopped for long must ask before it blames its peers.
#[test]
fn after_a_long_sleep_the_peer_is_asked_first() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        call P 10
        +100us
        P: BUSY c1
        +40ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +100us
    > P: BUSY c1
    > +40ms
      @7.40ms -> P RESEND c1 everything prio=7
      @12.40ms -> P RESEND c1 everything prio=7
      @17.40ms -> P RESEND c1 everything prio=7
      @22.40ms !! failed c1: peer silent for 22 ms after 3 resends; the request may have been executed
    ");
}

/// TIME-4: a peer that was stopped together with this endpoint has the whole timeout to respond,
/// and not only the time of three RESENDs.
#[test]
fn the_time_of_a_stop_is_no_silence() {
    assert_snapshot!(run("
        config timeout_usecs=100000
        meet P
        call P 10
        +7ms
        stopped 500ms
        +80ms
        P: DATA c1 0..10/10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +7ms
      @5.00ms -> P RESEND c1 everything prio=7
    > stopped 500ms
    > +80ms
      @2.50ms -> P RESEND c1 everything prio=7
      @7.50ms -> P RESEND c1 everything prio=7
      @17.50ms -> P RESEND c1 everything prio=7
      @37.50ms -> P RESEND c1 everything prio=7
      @62.50ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    ");
}

/// HM `homa_timer.c` `homa_timer_check_rpc` at the server: part of a request is given up. It was
/// not executed, and may be sent again.
#[test]
fn a_client_that_dies_while_it_sends() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        P: DATA s1 0..1000/5000
        +40ms
        live
        P: DATA s1 0..5000/5000
    "), @"
    > P: DATA s1 0..1000/5000
    > +40ms
      @5.00ms -> P RESEND s1 1000..5000 prio=7
      @10.00ms -> P RESEND s1 1000..5000 prio=7
      @15.00ms -> P RESEND s1 1000..5000 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..5000/5000
      !! request s1 from P: 5000 B
    ");
}

/// TIME-9, HM `homa_timer.c` `homa_timer_check_rpc`: NEED_ACKs about an unacknowledged response
/// follow at growing intervals.
#[test]
fn a_response_without_ack() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        +60ms
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > +60ms
      @2.50ms -> P NEED_ACK s1 prio=7
      @7.50ms -> P NEED_ACK s1 prio=7
      @17.50ms -> P NEED_ACK s1 prio=7
      @35.00ms -> P NEED_ACK s1 prio=7
    ");
}

/// TIME-9, HM `homa_timer.c` `homa_timer_check_rpc`, chosen by us: the response for a client that
/// has vanished is not kept forever.
#[test]
fn a_vanished_client() {
    assert_snapshot!(run("
        config timeout_usecs=20000 need_ack_limit=3
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        +60ms
        live
        count need_acks_exhausted
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > +60ms
      @2.50ms -> P NEED_ACK s1 prio=7
      @7.50ms -> P NEED_ACK s1 prio=7
      @17.50ms -> P NEED_ACK s1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > count need_acks_exhausted
      need_acks_exhausted=1
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 +FINISHED prio=7
    ");
}

/// A client that has vanished while it still had to grant the rest of the response.
#[test]
fn a_client_that_vanishes_without_granting() {
    assert_snapshot!(run("
        config timeout_usecs=20000 need_ack_limit=3 unsched_bytes=2000 unsched_bytes_min=2000 unsched_bytes_max=2000
        meet P
        P: DATA s1 0..10/10
        reply s1 10000
        +60ms
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10000
      -> P DATA s1 0..2000/10000 incoming=2000 packets=2 cutoffs=1 prio=5
    > +60ms
      @2.50ms -> P NEED_ACK s1 prio=7
      @7.50ms -> P NEED_ACK s1 prio=7
      @17.50ms -> P NEED_ACK s1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-10, HM `homa_incoming.c` `homa_need_ack_pkt`: the call is over, or was never made: ACK,
/// with the other acks for that server.
#[test]
fn need_ack_for_a_finished_call() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        P: DATA c1 0..10/10
        P: DATA c2 0..10/10
        P: NEED_ACK c1
        P: NEED_ACK c9
        Q: NEED_ACK c1
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > P: NEED_ACK c1
      -> P ACK c1 c2 prio=7
    > P: NEED_ACK c9
      -> P ACK c?9 prio=7
    > Q: NEED_ACK c1
      xx stale_sessions
    ");
}

/// TIME-10, HM `homa_incoming.c` `homa_need_ack_pkt`: the response is incomplete: RESENDs. No bytes
/// are missing: BUSY.
#[test]
fn need_ack_for_an_incomplete_call() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=3000 grant_increment=1000 grant_fifo_fraction=0
        meet P
        meet Q
        call P 10
        +1ms
        P: NEED_ACK c1
        P: DATA c1 0..1000/9000 unsched=2000
        +1ms
        P: NEED_ACK c1
        P: DATA c1 1000..2000/9000 unsched=2000
        Q: DATA s1 0..1000/5000 unsched=1000
        P: DATA c1 2000..3500/9000 unsched=2000
        +1ms
        P: NEED_ACK c1
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > +1ms
    > P: NEED_ACK c1
      -> P RESEND c1 everything prio=7
    > P: DATA c1 0..1000/9000 unsched=2000
    > +1ms
    > P: NEED_ACK c1
      -> P RESEND c1 1000..2000 prio=7
    > P: DATA c1 1000..2000/9000 unsched=2000
      -> P GRANT c1 3500 level=0 prio=7
    > Q: DATA s1 0..1000/5000 unsched=1000
      -> Q GRANT s1 2500 level=0 prio=7
    > P: DATA c1 2000..3500/9000 unsched=2000
    > +1ms
    > P: NEED_ACK c1
      -> P BUSY c1 prio=7
    ");
}

/// A client that asks again is alive: the count of NEED_ACKs restarts.
#[test]
fn a_client_that_asks_again_lives() {
    assert_snapshot!(run("
        config timeout_usecs=20000 need_ack_limit=3
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        +15ms
        P: RESEND s1 everything
        +15ms
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > +15ms
      @2.50ms -> P NEED_ACK s1 prio=7
      @7.50ms -> P NEED_ACK s1 prio=7
    > P: RESEND s1 everything
      -> P DATA s1 0..10/10 cutoffs=1 retransmit prio=7
    > +15ms
      @2.50ms -> P NEED_ACK s1 prio=7
      @7.50ms -> P NEED_ACK s1 prio=7
    > live
      clients=0 servers=1 peers=1 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// TIME-13: idle peers are forgotten after two minutes, without remains.
#[test]
fn idle_peers_are_forgotten() {
    assert_snapshot!(run("
        meet P
        meet Q
        +100s
        P: DATA s1 0..10/10
        +25s
        live
    "), @"
    > +100s
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > +25s
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-6: a server that asks about many calls at once receives one burst of RESENDs, and BUSY for
/// the other calls. (Found by many receivers on a loaded machine: the burst's room fell below
/// zero.)
#[test]
fn need_acks_for_many_incomplete_calls() {
    let calls = "call P 10\n".repeat(66);
    let asks: String = (1..=66).map(|call| format!("P: NEED_ACK c{call}\n")).collect();
    let transcript = run(&format!("meet P\n{calls}+1ms\n{asks}"));
    let count = |text: &str| transcript.matches(text).count();
    assert_eq!((count("-> P RESEND"), count("-> P BUSY")), (64, 2));
}
