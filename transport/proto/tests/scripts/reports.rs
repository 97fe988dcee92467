//! Reports that packets do not reach a peer: hints, accepted only if the peer stays silent.

use crate::script::run;
use insta::assert_snapshot;

/// RPC-14: a forged ICMP packet ends no RPC. The peer is asked at once, and answers.
#[test]
fn a_peer_that_answers_is_reachable() {
    assert_snapshot!(run("
        meet P
        call P 10
        unreachable P port
        +100us
        P: BUSY c1
        unreachable P port
        +20ms
        P: DATA c1 0..10/10
        count unreachable_reports unreachable_refuted
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > unreachable P port
      -> P RESEND c1 everything prio=7
    > +100us
    > P: BUSY c1
    > unreachable P port
    > +20ms
      @12.40ms -> P RESEND c1 everything prio=7
      @17.40ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > count unreachable_reports unreachable_refuted
      unreachable_reports=2
      unreachable_refuted=1
    ");
}

/// RPC-14: another RPC with the peer shows that it is alive, too.
#[test]
fn a_peer_that_is_heard_about_anything_is_reachable() {
    assert_snapshot!(run("
        meet P
        call P 10
        call P 10
        unreachable P host
        +1ms
        P: DATA c2 0..10/10
        +20ms
        count unreachable_refuted
        live
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > call P 10
      -> P DATA c2 0..10/10 cutoffs=1 prio=7
    > unreachable P host
      -> P RESEND c1 everything prio=7
    > +1ms
    > P: DATA c2 0..10/10
      !! response c2: 10 B
    > +20ms
      @1.00ms -> P ACK c2 prio=7
      @4.00ms -> P RESEND c1 everything prio=7
      @9.00ms -> P RESEND c1 everything prio=7
      @14.00ms -> P RESEND c1 everything prio=7
    > count unreachable_refuted
      unreachable_refuted=1
    > live
      clients=1 servers=0 peers=1 send=10 receive=0 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// RPC-14: a report does not drop a response; its client is asked.
#[test]
fn a_response_is_kept_while_its_client_answers() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        unreachable P port
        +1ms
        P: BUSY s1
        +10ms
        P: ACK s1
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > unreachable P port
      -> P NEED_ACK s1 prio=7
    > +1ms
    > P: BUSY s1
    > +10ms
      @4.00ms -> P NEED_ACK s1 prio=7
    > P: ACK s1
    ");
}

/// RPC-14: a response to a client that has disappeared is dropped after two questions.
#[test]
fn a_response_is_dropped_when_its_client_has_gone() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..10/10
        reply s1 10
        unreachable P port
        +20ms
        live
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 prio=7
    > unreachable P port
      -> P NEED_ACK s1 prio=7
    > +20ms
      @5.00ms -> P NEED_ACK s1 prio=7
    > live
      clients=0 servers=0 peers=1 send=0 receive=0 grantable=0 incoming=0 sendable=0 timers=0 control=0
    ");
}

/// TIME-4: a packet dropped by the local firewall is lost, without further effect.
#[test]
fn a_packet_that_the_firewall_drops_is_lost() {
    assert_snapshot!(run("
        meet P
        call P 10
        unreachable P permission
        +5ms
        P: DATA c1 0..10/10
        P: DATA s1 0..10/10
        reply s1 10
        unreachable P permission
        P: RESEND s1 everything
        count sends_not_permitted
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > unreachable P permission
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 cutoffs=1 ack=c1 prio=7
    > unreachable P permission
    > P: RESEND s1 everything
      -> P BUSY s1 prio=7
    > count sends_not_permitted
      sends_not_permitted=2
    ");
}

/// TIME-4: if no packet passes until the call is given up, the failure names the firewall.
#[test]
fn a_firewall_that_drops_everything_is_named() {
    assert_snapshot!(run("
        config timeout_usecs=20000
        meet P
        call P 10
        unreachable P permission
        +5ms
        unreachable P permission
        +5ms
        unreachable P permission
        +5ms
        unreachable P permission
        +20ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > unreachable P permission
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > unreachable P permission
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > unreachable P permission
    > +5ms
      @5.00ms -> P RESEND c1 everything prio=7
    > unreachable P permission
    > +20ms
      @5.00ms !! failed c1: this host's firewall, or its full table of connections, drops all packets to the peer; the request may have been executed
    ");
}
