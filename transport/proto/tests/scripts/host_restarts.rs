//! Client hosts of the kernel profile that were restarted. Source: HM `homa_utils.c` `homa_init`: a
//! module counts its calls from 2, each time that it is loaded.

use crate::script::run;
use insta::assert_snapshot;

/// AMO-10: a packet without a version of the cutoffs, from a host that has had it for long, under
/// an id that is not new. (The server took all calls of the new life for late duplicates, silently,
/// until they had outrun the calls of the old one.)
#[test]
fn a_module_that_was_loaded_anew_is_served() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        P: DATA s2 0..10/10 ack=s1 cutoffs=1
        reply s2 10
        P: ACK s2
        +2s
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        P: DATA s2 0..10/10 ack=s1 cutoffs=1
        reply s2 10
        P: ACK s2
        P: DATA s2 0..10/10 cutoffs=1
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s2 0..10/10 ack=s1 cutoffs=1
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 prio=6
    > P: ACK s2
    > +2s
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: DATA s2 0..10/10 ack=s1 cutoffs=1
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 prio=6
    > P: ACK s2
    > P: DATA s2 0..10/10 cutoffs=1
      xx finished
    > count sessions_replaced
      sessions_replaced=1
    ");
}

/// AMO-10: the remains of the old life end; its replies do not become replies of the new life.
#[test]
fn requests_of_the_old_life_end() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        P: DATA s2 0..10/10 cutoffs=1
        P: DATA s3 0..10/10 cutoffs=1
        +2s
        P: DATA s2 0..10/10 cutoffs=0
        +1us
        reply s1 10
        P: DATA s3 0..10/10 cutoffs=1
        reply s2 10
        reply s3 10
        live
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/10 cutoffs=1
      !! request s2 from P: 10 B
    > P: DATA s3 0..10/10 cutoffs=1
      !! request s3 from P: 10 B
    > +2s
    > P: DATA s2 0..10/10 cutoffs=0
      !! request s2 from P: 10 B
      -> P CUTOFFS s2 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > +1us
    > reply s1 10
      = the RPC has ended
    > P: DATA s3 0..10/10 cutoffs=1
      !! request s3 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 prio=6
    > reply s3 10
      -> P DATA s3 0..10/10 prio=6
    > live
      clients=0 servers=2 peers=1 send=20 receive=0 grantable=0 incoming=0 sendable=0 timers=2 control=0
    ");
}

/// AMO-7, AMO-10: copies of the first requests that arrive within a second are not taken for a
/// restart.
#[test]
fn late_copies_of_the_first_requests_are_not_executed() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        P: DATA s2 0..10/10 cutoffs=0
        reply s1 10
        reply s2 10
        P: DATA s3 0..10/10 ack=s1 cutoffs=1
        +900ms
        P: DATA s1 0..10/10 cutoffs=0
        P: DATA s2 0..10/10 retransmit cutoffs=1
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/10 cutoffs=0
      !! request s2 from P: 10 B
      -> P CUTOFFS s2 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > reply s2 10
      -> P DATA s2 0..10/10 prio=6
    > P: DATA s3 0..10/10 ack=s1 cutoffs=1
      !! request s3 from P: 10 B
    > +900ms
      @2.50ms -> P NEED_ACK s2 prio=7
      @7.50ms -> P NEED_ACK s2 prio=7
      @17.50ms -> P NEED_ACK s2 prio=7
      @35.00ms -> P NEED_ACK s2 prio=7
      @67.50ms -> P NEED_ACK s2 prio=7
      @132.50ms -> P NEED_ACK s2 prio=7
      @232.50ms -> P NEED_ACK s2 prio=7
      @332.50ms -> P NEED_ACK s2 prio=7
      @432.50ms -> P NEED_ACK s2 prio=7
      @532.50ms -> P NEED_ACK s2 prio=7
      @632.50ms -> P NEED_ACK s2 prio=7
      @732.50ms -> P NEED_ACK s2 prio=7
      @832.50ms -> P NEED_ACK s2 prio=7
    > P: DATA s1 0..10/10 cutoffs=0
      xx finished
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > P: DATA s2 0..10/10 retransmit cutoffs=1
      xx duplicate_packets
    > count sessions_replaced
      sessions_replaced=0
    ");
}

/// AMO-10: another request under the id of one that was served.
#[test]
fn the_same_id_with_other_contents_tells_a_restart() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10
        P: DATA s1 0..12/12
        reply s1 10
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: DATA s1 0..10/10
      xx finished
    > P: DATA s1 0..12/12
      !! request s1 from P: 12 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > count sessions_replaced
      sessions_replaced=1
    ");
}

/// AMO-10, TIME-7: ids are forgotten when the last RESEND is long past: then a client that asks is
/// asked to send its request.
#[test]
fn without_any_sign_the_ids_of_before_are_forgotten() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        +3s
        P: RESEND s1 everything
        P: DATA s1 0..10/10
        +4s
        P: RESEND s1 everything
        +7s
        P: RESEND s1 everything
        P: DATA s1 0..10/10 retransmit
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > +3s
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: DATA s1 0..10/10
      xx finished
    > +4s
    > P: RESEND s1 everything
      xx unknown_rpcs
    > +7s
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > P: DATA s1 0..10/10 retransmit
      !! request s1 from P: 10 B
    ");
}

/// AMO-10: a host makes one call, is restarted, and makes the same call within five seconds. ICMP
/// has shown that the port of its first life was closed, and a RESEND shows that a client waits.
/// (The server took the call for a late copy, and it timed out.)
#[test]
fn the_same_single_call_of_the_next_life_is_served() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        unreachable P port
        +100ms
        P: DATA s1 0..10/10 cutoffs=0
        P: RESEND s1 everything
        P: DATA s1 0..10/10 retransmit cutoffs=0
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10 cutoffs=0
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > unreachable P port
      -> P NEED_ACK s1 prio=7
    > +100ms
      @5.00ms -> P NEED_ACK s1 prio=7
    > P: DATA s1 0..10/10 cutoffs=0
      xx finished
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > P: DATA s1 0..10/10 retransmit cutoffs=0
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: DATA s1 0..10/10 cutoffs=0
      xx finished
    > count sessions_replaced
      sessions_replaced=1
    ");
}

/// AMO-10: a second after ICMP the first packet is enough, and two RESENDs a second after the ack:
/// no packet of the earlier life is in flight any more.
#[test]
fn a_call_that_its_client_has_dropped_is_a_new_one_after_a_second() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        unreachable P port
        +1200ms
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        P: ACK s1
        +900ms
        P: RESEND s1 everything
        P: RESEND s1 everything
        P: DATA s1 0..10/10 cutoffs=0
        +200ms
        P: DATA s1 0..10/10 cutoffs=0
        P: RESEND s1 everything
        +5ms
        P: RESEND s1 everything
        P: DATA s1 0..10/10 retransmit cutoffs=0
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > unreachable P port
      -> P NEED_ACK s1 prio=7
    > +1200ms
      @5.00ms -> P NEED_ACK s1 prio=7
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > +900ms
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: DATA s1 0..10/10 cutoffs=0
      xx finished
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > +200ms
    > P: DATA s1 0..10/10 cutoffs=0
      xx finished
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > P: RESEND s1 everything
      xx unknown_rpcs
    > +5ms
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    > P: DATA s1 0..10/10 retransmit cutoffs=0
      !! request s1 from P: 10 B
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > count sessions_replaced
      sessions_replaced=2
    ");
}

/// AMO-7, AMO-10: neither a RESEND nor ICMP alone executes a request twice within a second.
#[test]
fn late_packets_of_a_dropped_call_execute_nothing() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10 cutoffs=0
        reply s1 10
        P: ACK s1
        P: RESEND s1 everything
        P: DATA s1 0..10/10 retransmit cutoffs=0
        P: DATA s2 0..10/10 cutoffs=0
        reply s2 10
        unreachable P port
        +100ms
        P: DATA s2 0..10/10 retransmit cutoffs=0
        P: RESEND s2 5..10
        P: DATA s2 0..10/10 retransmit cutoffs=0
        count sessions_replaced
    "), @"
    > P: DATA s1 0..10/10 cutoffs=0
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: DATA s1 0..10/10 retransmit cutoffs=0
      xx finished
      -> P CUTOFFS s1 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > P: DATA s2 0..10/10 cutoffs=0
      !! request s2 from P: 10 B
    > reply s2 10
      -> P DATA s2 0..10/10 prio=6
    > unreachable P port
      -> P NEED_ACK s2 prio=7
    > +100ms
      @5.00ms -> P NEED_ACK s2 prio=7
    > P: DATA s2 0..10/10 retransmit cutoffs=0
      xx finished
      -> P CUTOFFS s2 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
    > P: RESEND s2 5..10
      xx unknown_rpcs
    > P: DATA s2 0..10/10 retransmit cutoffs=0
      xx finished
    > count sessions_replaced
      sessions_replaced=0
    ");
}
