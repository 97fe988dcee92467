//! The life of an RPC at both ends. Requirements RPC-1 to RPC-6.

use crate::script::run;
use insta::assert_snapshot;

/// RPC-2, HM `homa_rpc.h` `homa_rpc`: OUTGOING, INCOMING, done. The first contact costs one
/// question.
#[test]
fn the_first_call_to_a_server_and_the_second() {
    assert_snapshot!(run("
        call P 100
        P: NEED_ACK c1 +CONFIRM
        P: DATA c1 0..100/100
        call P 200
        P: DATA c2 0..300/300
        live
        +200s
        live
    "), @"
    > call P 100
      -> P DATA c1 0..100/100 new prio=6
    > P: NEED_ACK c1 +CONFIRM
      -> P DATA c1 0..100/100 +CONFIRM prio=6
    > P: DATA c1 0..100/100
      !! response c1: 100 B
    > call P 200
      -> P DATA c2 0..200/200 ack=c1 prio=6
    > P: DATA c2 0..300/300
      !! response c2: 300 B
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > +200s
      @1.00ms -> P ACK c2 prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-2, RPC-6, HM `homa_rpc.h` `homa_rpc` at the server: INCOMING, IN_SERVICE, OUTGOING, done.
#[test]
fn a_request_and_its_reply() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..100/100
        live
        reply s1 50
        live
        P: ACK s1
        live
    "), @"
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s1 50
      -> P DATA s1 0..50/50 cutoffs=1 prio=7
    > live
      clients=0 servers=1 peers=1 send=50 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    > P: ACK s1
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// HM `homa_timer.c` `homa_timer_check_rpc`: while the application works no packet is sent, however
/// long it takes.
#[test]
fn a_request_in_service_has_no_timers() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..100/100
        +5s
        P: RESEND s1 everything
        reply s1 50
    "), @"
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > +5s
    > P: RESEND s1 everything
      -> P BUSY s1 prio=7
    > reply s1 50
      -> P DATA s1 0..50/50 cutoffs=1 prio=7
    ");
}

/// RPC-7: both roles at once, and ids that do not get into each other's way.
#[test]
fn an_endpoint_is_client_and_server() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA s1 0..10/10
        reply s1 20
        P: DATA c1 0..20/20 ack=s1
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 20
      -> P DATA s1 0..20/20 cutoffs=1 prio=7
    > P: DATA c1 0..20/20 ack=s1
      !! response c1: 20 B
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-5, HM `homa_rpc.c` `homa_rpc_end`, chosen by us: cancelling notifies the server, so that it
/// can stop; no event follows.
#[test]
fn a_cancelled_call() {
    assert_snapshot!(run("
        meet P
        call P 10
        cancel c1
        cancel c1
        P: DATA c1 0..20/20
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > cancel c1
      -> P ACK c1 prio=7
    > cancel c1
      = the RPC has ended
    > P: DATA c1 0..20/20
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// A call cancelled before anything left needs no word to anybody.
#[test]
fn a_call_cancelled_while_its_response_arrives() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA c1 0..1000/5000
        cancel c1
        P: DATA c1 1000..2000/5000
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..1000/5000
    > cancel c1
      -> P ACK c1 prio=7
    > P: DATA c1 1000..2000/5000
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-8: a deadline ends the call. The request had left: it may have been executed.
#[test]
fn a_deadline() {
    assert_snapshot!(run("
        meet P
        call P 10 deadline=3ms
        call P 10 deadline=2ms
        +4ms
        P: DATA c1 0..5/5
        live
    "), @"
    > call P 10 deadline=3ms
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10 deadline=2ms
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > +4ms
      @2.00ms !! failed c2: deadline exceeded; the request may have been executed
      @2.00ms -> P ACK c2 prio=7
      @3.00ms !! failed c1: deadline exceeded; the request may have been executed
      @3.00ms -> P ACK c1 prio=7
    > P: DATA c1 0..5/5
      xx unknown_rpcs
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-8: a deadline may be set later, and again.
#[test]
fn a_deadline_that_is_set_later() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10 deadline=1ms
        deadline c1 2ms
        deadline c2 3ms
        +4ms
        deadline c1 1ms
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10 deadline=1ms
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > deadline c1 2ms
    > deadline c2 3ms
    > +4ms
      @2.00ms !! failed c1: deadline exceeded; the request may have been executed
      @2.00ms -> P ACK c1 prio=7
      @3.00ms !! failed c2: deadline exceeded; the request may have been executed
      @3.00ms -> P ACK c2 prio=7
    > deadline c1 1ms
      = the RPC has ended
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-5: as long as part of the request has not left, it was not executed.
#[test]
fn a_deadline_before_the_request_has_left() {
    assert_snapshot!(run("
        meet P
        call P 100000 deadline=2ms
        +3ms
        live
    "), @"
    > call P 100000 deadline=2ms
      -> P DATA c1 0..10000/100000 incoming=10000 packets=8 cutoffs=1 prio=4
    > +3ms
      @2.00ms !! failed c1: deadline exceeded; the request was not executed
      @2.00ms -> P ACK c1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-5: the response had started, so the request was executed.
#[test]
fn a_deadline_while_the_response_arrives() {
    assert_snapshot!(run("
        meet P
        call P 10 deadline=2ms
        P: DATA c1 0..1000/5000
        +3ms
        live
    "), @"
    > call P 10 deadline=2ms
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..1000/5000
    > +3ms
      @2.00ms !! failed c1: deadline exceeded; the request was executed, its response is lost
      @2.00ms -> P ACK c1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-4, HM `homa_plumbing.c` `homa_sendmsg`: a reply to a client that has disappeared is an
/// error, not a success.
#[test]
fn a_reply_to_a_vanished_client() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..100/100
        P: ACK s1
        reply s1 50
    "), @"
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > P: ACK s1
    > reply s1 50
      = the RPC has ended
    ");
}

/// RPC-4: a second reply makes no sense.
#[test]
fn a_reply_is_given_once() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..100/100
        reply s1 50
        reply s1 50
        P: ACK s1
    "), @"
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > reply s1 50
      -> P DATA s1 0..50/50 cutoffs=1 prio=7
    > reply s1 50
      = not possible in the RPC's state
    > P: ACK s1
    ");
}

/// RPC-5: the application abandons a request; the client is notified, also if the first packet is
/// lost.
#[test]
fn an_abandoned_request() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..100/100
        abandon s1
        P: RESEND s1 everything
        P: DATA s1 0..100/100
        live
    "), @"
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > abandon s1
      -> P RPC_UNKNOWN s1 +REFUSED(Abandoned) prio=7
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 +FINISHED prio=7
    > P: DATA s1 0..100/100
      xx finished
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// The client's side of that.
#[test]
fn a_call_that_the_server_abandons() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=5
        call P 10
        P: RPC_UNKNOWN c2 +FINISHED
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c1 +REFUSED=5
      !! failed c1: the server refused: its application dropped the request without a reply; the request may have been executed
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c2 +FINISHED
      !! failed c2: the server has finished the call, and its response did not arrive; the request may have been executed
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// RPC-13: the response was longer than the server sends.
#[test]
fn a_call_whose_response_is_too_long_for_its_server() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=7
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c1 +REFUSED=7
      !! failed c1: the server refused: its response is longer than max_message allows it to send; the request was executed, its response is lost
    ");
}

/// Without a session the server has executed nothing, and any host may write that packet.
#[test]
fn a_call_without_a_session_whose_response_is_too_long() {
    assert_snapshot!(run("
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=7
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 new prio=6
    > P: RPC_UNKNOWN c1 +REFUSED=7
      !! failed c1: the server refused: its response is longer than max_message allows it to send; the request may have been executed
    ");
}

/// RPC-13: errors of the server that are known to have happened before execution.
#[test]
fn calls_that_are_refused() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        call P 10
        call P 10
        P: RPC_UNKNOWN c1 +REFUSED=1
        P: RPC_UNKNOWN c2 +REFUSED=2
        P: RPC_UNKNOWN c3 +REFUSED=3
        P: RPC_UNKNOWN c4 +REFUSED=4
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c3 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c4 0..10/10 cutoffs=1 prio=7
    > P: RPC_UNKNOWN c1 +REFUSED=1
      !! failed c1: the server refused: overloaded; the request was not executed
    > P: RPC_UNKNOWN c2 +REFUSED=2
      !! failed c2: the server refused: request longer than it accepts; the request was not executed
    > P: RPC_UNKNOWN c3 +REFUSED=3
      !! failed c3: the server refused: not serving requests; the request was not executed
    > P: RPC_UNKNOWN c4 +REFUSED=4
      !! failed c4: the server refused: shutting down; the request was not executed
    ");
}
