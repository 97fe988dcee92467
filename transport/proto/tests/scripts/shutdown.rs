//! The end of an endpoint, and ends that the network reports. Source: HM `homa_rpc.c`
//! `homa_abort_rpcs`, `homa_sock.c` `homa_sock_shutdown`.

use crate::script::run;
use insta::assert_snapshot;

/// RPC-12, HM `homa_sock.c` `homa_sock_shutdown`, ours with a word to the peers: everything ends at
/// once and honestly.
#[test]
fn an_endpoint_shuts_down() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA s1 0..10/10
        P: DATA s2 0..10/20
        P: DATA s3 0..10/10
        reply s3 10
        shutdown
        live
        call P 10
        P: DATA s4 0..10/10
        P: DATA c1 0..10/10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/20
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    > reply s3 10
      -> P DATA s3 0..10/10 cutoffs=1 prio=7
    > shutdown
      !! failed c1: endpoint shut down; the request may have been executed
      -> P ACK c1 prio=7
      -> P RPC_UNKNOWN s1 +REFUSED(Abandoned) prio=7
      -> P RPC_UNKNOWN s2 +REFUSED(ShuttingDown) prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > call P 10
      = endpoint shut down
    > P: DATA s4 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s4 +REFUSED(ShuttingDown) prio=7
    > P: DATA c1 0..10/10
      xx unknown_rpcs
    ");
}

/// AMO-5: late duplicates of executed requests are not called "not executed".
#[test]
fn what_was_executed_is_not_refused() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        serving off
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        shutdown
        P: DATA s1 0..10/10
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > serving off
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s2 +REFUSED(NotServing) prio=7
    > shutdown
    > P: DATA s1 0..10/10
      xx finished
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 +FINISHED prio=7
    ");
}

/// AMO-5: a server without the call's session has no information about an earlier life.
#[test]
fn a_refusal_by_another_life_of_the_server_promises_nothing() {
    assert_snapshot!(run("
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=3 inc=0
        meet P
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=3 inc=0
        call P 10
        P: RPC_UNKNOWN c2 +REFUSED=3
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: RPC_UNKNOWN c1 +REFUSED=3 inc=0
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c1 +REFUSED=3 inc=0
      xx stale_sessions
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c2 +REFUSED=3
      !! failed c2: the server refused: not serving requests; the request was not executed
    ");
}

/// RPC-14, HM `homa_rpc.c` `homa_abort_rpcs`, `homa_incoming.c` `homa_dispatch_pkts`: the port is
/// closed: every RPC with that peer ends, the others continue.
#[test]
fn a_closed_port() {
    assert_snapshot!(run("
        meet P
        meet Q
        call P 10
        call Q 10
        P: DATA s1 0..10/10
        unreachable P port
        +20ms
        live
        P: DATA c1 0..10/10
        call P 10
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call Q 10
      -> Q DATA c2 0..10/10 cutoffs=1 prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > unreachable P port
      -> P RESEND c1 everything prio=7
    > +20ms
      @5.00ms -> P RESEND c1 everything prio=7
      @5.00ms -> Q RESEND c2 everything prio=7
      @10.00ms !! failed c1: port closed at the peer; the request may have been executed
      @10.00ms -> P RESEND c1 everything prio=7
      @10.00ms -> Q RESEND c2 everything prio=7
      @15.00ms -> Q RESEND c2 everything prio=7
    > live
      clients=1 servers=1 peers=2 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > P: DATA c1 0..10/10
      xx unknown_rpcs
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 new prio=7
    ");
}

/// A first call to a closed port was not executed.
#[test]
fn a_port_that_was_always_closed() {
    assert_snapshot!(run("
        call P 10
        unreachable P port
        +20ms
        call Q 10
        unreachable Q host
        +20ms
        unreachable R permission
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > unreachable P port
      -> P RESEND c1 everything new prio=7
    > +20ms
      @5.00ms -> P RESEND c1 everything new prio=7
      @10.00ms !! failed c1: port closed at the peer; the request was not executed
      @10.00ms -> P RESEND c1 everything new prio=7
    > call Q 10
      -> Q DATA c2 0..10/10 new prio=6
    > unreachable Q host
      -> Q RESEND c2 everything new prio=7
    > +20ms
      @5.00ms -> Q RESEND c2 everything new prio=7
      @10.00ms !! failed c2: no such host, or no route to it; the request was not executed
      @10.00ms -> Q RESEND c2 everything new prio=7
    > unreachable R permission
    ");
}

/// TIME-12: many RPCs end in small steps (HM `homa_rpc.c` `homa_rpc_reap`).
#[test]
fn many_rpcs_end_in_steps() {
    assert_snapshot!(run("
        config reap_limit=2
        meet P
        call P 10
        call P 10
        call P 10
        unreachable P port
        +20ms
        live
        +0us
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > unreachable P port
      -> P RESEND c1 everything prio=7
    > +20ms
      @5.00ms -> P RESEND c1 everything prio=7
      @5.00ms -> P RESEND c2 everything prio=7
      @5.00ms -> P RESEND c3 everything prio=7
      @10.00ms !! failed c1: port closed at the peer; the request may have been executed
      @10.00ms !! failed c2: port closed at the peer; the request may have been executed
      @10.00ms -> P RESEND c1 everything prio=7
      @10.00ms -> P RESEND c2 everything prio=7
      @10.00ms -> P RESEND c3 everything prio=7
      @10.00ms !! failed c3: port closed at the peer; the request may have been executed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > +0us
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}
