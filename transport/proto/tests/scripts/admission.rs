//! At most once: which requests may be executed, and when. Requirements AMO-1 to AMO-6.

use crate::script::run;
use insta::assert_snapshot;

/// AMO-1, BAD-4: no state is kept of an unknown client's request. Its client sends it again in the
/// session that it is offered.
#[test]
fn a_first_contact() {
    assert_snapshot!(run("
        P: DATA s1 0..100/100
        live
        P: DATA s1 0..100/100
        live
        reply s1 10
        P: DATA s2 0..100/100 ack=s1
        P: DATA s3 0..100/100 low=1
        count sessions_begun
    "), @"
    > P: DATA s1 0..100/100
      -> P NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..100/100
      !! request s1 from P: 100 B
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s2 0..100/100 ack=s1
      !! request s2 from P: 100 B
    > P: DATA s3 0..100/100 low=1
      !! request s3 from P: 100 B
    > count sessions_begun
      sessions_begun=1
    ");
}

/// AMO-1: each packet of an unknown client is offered the same session. The session starts with the
/// first packet that arrives in it.
#[test]
fn every_packet_is_offered_the_same_session() {
    assert_snapshot!(run("
        P: DATA s1 0..100/200 inc=80
        P: DATA s1 100..200/200 inc=80
        P: DATA s2 0..10/10 inc=80
        P: DATA s1 100..200/200
        P: DATA s2 0..10/10
        P: DATA s1 0..100/200
        P: DATA s3 0..10/10 inc=80
    "), @"
    > P: DATA s1 0..100/200 inc=80
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 100..200/200 inc=80
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s2 0..10/10 inc=80
      -> P NEED_ACK s2 +CONFIRM prio=7
    > P: DATA s1 100..200/200
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > P: DATA s1 0..100/200
      !! request s1 from P: 200 B
    > P: DATA s3 0..10/10 inc=80
      -> P NEED_ACK s3 +CONFIRM prio=7
    ");
}

/// GRANT-12, AMO-1: no GRANT, no CUTOFFS, no RESEND to an unknown client. Requirement BAD-5: one
/// offer for each packet, which is shorter than the packet.
#[test]
fn an_unknown_client_gets_only_the_question() {
    assert_snapshot!(run("
        P: DATA s1 0..1/90000 unsched=2000 cutoffs=0
        P: DATA s1 0..1/90000 unsched=2000 cutoffs=0 inc=80
        +990ms
        P: RESEND s1 everything inc=80
        +10ms
        live
    "), @"
    > P: DATA s1 0..1/90000 unsched=2000 cutoffs=0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..1/90000 unsched=2000 cutoffs=0 inc=80
      -> P NEED_ACK s1 +CONFIRM prio=7
    > +990ms
    > P: RESEND s1 everything inc=80
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > +10ms
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-2: a duplicate from the network's depths, of a call that ended long ago: its client does not
/// answer.
#[test]
fn a_late_duplicate_after_everything_was_forgotten() {
    assert_snapshot!(run("
        P: DATA s1 0..100/100 inc=5
        +10s
        live
    "), @"
    > P: DATA s1 0..100/100 inc=5
      -> P NEED_ACK s1 +CONFIRM prio=7
    > +10s
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-2: a duplicate within a session is known to be finished.
#[test]
fn a_late_duplicate_within_the_session() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10
        P: DATA s1 0..10/10 inc=80
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s1 0..10/10 inc=80
      xx finished
    ");
}

/// AMO-2: ids below the client's low-water mark are refused, although they never arrived.
#[test]
fn a_request_below_the_low_water_mark() {
    assert_snapshot!(run("
        meet P
        P: DATA s5 0..10/10 low=2
        P: DATA s2 0..10/10
        P: DATA s3 0..10/10
    "), @"
    > P: DATA s5 0..10/10 low=2
      !! request s5 from P: 10 B
    > P: DATA s2 0..10/10
      xx finished
    > P: DATA s3 0..10/10
      !! request s3 from P: 10 B
    ");
}

/// AMO-2: a request refused for good is not executed by a duplicate either.
#[test]
fn a_refused_request_stays_refused() {
    assert_snapshot!(run("
        meet P
        serving off
        P: DATA s1 0..10/10
        serving on
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
    "), @"
    > serving off
    > P: DATA s1 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s1 +REFUSED(NotServing) prio=7
    > serving on
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    ");
}

/// AMO-5: a duplicate of a request that was executed is not refused, because its client would take
/// that for a promise.
#[test]
fn an_executed_request_is_not_refused() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s2 0..10/10
        reply s2 10
        shutdown
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        P: DATA s2 0..10/10 inc=80
        P: DATA s3 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 cutoffs=1 prio=7
    > shutdown
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      xx finished
    > P: DATA s2 0..10/10 inc=80
      xx finished
    > P: DATA s3 0..10/10
      xx not_serving
      -> P RPC_UNKNOWN s3 +REFUSED(ShuttingDown) prio=7
    ");
}

/// AMO-4: a client restarted at the same address gets a new session; its old requests are dropped.
#[test]
fn a_restarted_client() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        P: DATA s2 0..10/20
        P: DATA s500 0..10/10 inc=99
        P: DATA s3 0..10/10 session=7 claim=80
        P: DATA s500 0..10/10 inc=99
        P: DATA s500 0..10/10
        +1ms
        live
        reply s1 10
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/20
    > P: DATA s500 0..10/10 inc=99
      -> P NEED_ACK s500 +CONFIRM prio=7
    > P: DATA s3 0..10/10 session=7 claim=80
      -> P NEED_ACK s3 +CONFIRM prio=7
    > P: DATA s500 0..10/10 inc=99
      -> P NEED_ACK s500 +CONFIRM prio=7
    > P: DATA s500 0..10/10
      !! request s500 from P: 10 B
    > +1ms
    > live
      clients=0 servers=1 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > reply s1 10
      = the RPC has ended
    > count sessions_replaced
      sessions_replaced=1
    ");
}

/// A forgotten session (the server was restarted) is questioned; the packet does not count as
/// proof.
#[test]
fn a_request_in_an_unknown_session() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10 session=12345
        P: DATA s1 0..10/10 +CONFIRM session=12345
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10 session=12345
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10 +CONFIRM session=12345
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    ");
}

/// SESSION-2: an offer for one claim is not valid for another one, nor at another address.
#[test]
fn an_offer_is_good_for_its_claim_and_its_address() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: DATA s1 0..10/10 claim=81
        P: DATA s1 0..10/10 low=0
        Q: DATA s1 0..10/10
        live
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10 claim=81
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10 low=0
      -> P NEED_ACK s1 +CONFIRM prio=7
    > Q: DATA s1 0..10/10
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// CHALLENGE-1: an offer is good for half a minute at least, and for a minute at most.
#[test]
fn an_offer_that_is_answered_late() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        +29s
        P: DATA s1 0..10/10
        Q: DATA s1 0..10/10
        +61s
        Q: DATA s1 0..10/10
        Q: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > +29s
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > Q: DATA s1 0..10/10
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > +61s
    > Q: DATA s1 0..10/10
      -> Q NEED_ACK s1 +CONFIRM prio=7
    > Q: DATA s1 0..10/10
      !! request s1 from Q: 10 B
    ");
}

/// AMO-4, SESSION-3: once another life of the client has started its session, the previous one is
/// no longer valid, although it was offered recently.
#[test]
fn the_session_of_an_earlier_life_does_not_come_back() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10 inc=5
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s500 0..10/10 inc=6
        P: DATA s500 0..10/10
        P: DATA s1 0..10/10 first
        P: DATA s2 0..10/10 first
        count sessions_begun sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 inc=5
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: DATA s500 0..10/10 inc=6
      -> P NEED_ACK s500 +CONFIRM prio=7
    > P: DATA s500 0..10/10
      !! request s500 from P: 10 B
    > P: DATA s1 0..10/10 first
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s2 0..10/10 first
      -> P NEED_ACK s2 +CONFIRM prio=7
    > count sessions_begun sessions_replaced
      sessions_begun=2
      sessions_replaced=1
    ");
}

/// AMO-4: a forged first contact in the name of a new client changes nothing for it.
#[test]
fn a_first_contact_is_not_disturbed() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10
        P: DATA s700 0..10/10 inc=3
        P: DATA s1 0..10/10 first
        P: DATA s700 0..10/10 inc=3
        P: DATA s2 0..10/10 first
        live
    "), @"
    > P: DATA s1 0..10/10
      -> P NEED_ACK s1 +CONFIRM prio=7
    > P: DATA s700 0..10/10 inc=3
      -> P NEED_ACK s700 +CONFIRM prio=7
    > P: DATA s1 0..10/10 first
      !! request s1 from P: 10 B
    > P: DATA s700 0..10/10 inc=3
      -> P NEED_ACK s700 +CONFIRM prio=7
    > P: DATA s2 0..10/10 first
      !! request s2 from P: 10 B
    > live
      clients=0 servers=2 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// WIRE-33: a client of an older version is refused, whether or not it has had a session; no state
/// of it is kept.
#[test]
fn an_older_client_is_refused() {
    assert_snapshot!(run("
        P: DATA s1 0..10/10 old
        P: DATA s1 0..10/10 session=7 old
        live
    "), @"
    > P: DATA s1 0..10/10 old
      xx client_too_old
      -> P RPC_UNKNOWN s1 +REFUSED(ClientTooOld) prio=7
    > P: DATA s1 0..10/10 session=7 old
      xx client_too_old
      -> P RPC_UNKNOWN s1 +REFUSED(ClientTooOld) prio=7
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// AMO-6, CAP-22: the session outlives all other state of an idle client, but for the gaps below its
/// highest finished id (s900).
#[test]
fn a_client_that_comes_back_after_a_long_time() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        +200s
        live
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        P: DATA s901 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > P: ACK s1
    > +200s
    > live
      clients=0 servers=0 peers=0 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s2 0..10/10
      xx finished
    > P: DATA s901 0..10/10
      !! request s901 from P: 10 B
    ");
}
