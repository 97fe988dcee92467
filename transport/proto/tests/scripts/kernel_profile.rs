//! The core in the kernel profile. Source: docs/reference/homa-module.md, *Rules for peers*.

use crate::script::run;
use insta::assert_snapshot;

/// AMO-7: no sessions: a request is executed at once; duplicates are recognised as long as the peer
/// is known.
#[test]
fn requests_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: DATA s1 0..10/10
      xx finished
    ");
}

/// Calls: even ids, no question; the answer to NEED_ACK is a full ACK.
#[test]
fn calls_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        P: DATA c1 0..10/10
        P: NEED_ACK c1
        call P 2000000
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > P: NEED_ACK c1
      -> P ACK c1 prio=7
    > call P 2000000
      = the message has 2000000 bytes, max_message is 1000000
    ");
}

/// RPC-5: a server of the kernel never gives up a response that waits for grants (HM `homa_timer.c`
/// `homa_timer_check_rpc`). Its client reports that it has ended, and repeats that when more of the
/// response arrives; bytes that the server will ask about anyway are ignored.
#[test]
fn a_cancelled_call_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        cancel c1
        P: DATA c1 0..1396/100000 unsched=40000
        P: DATA c1 0..10/10
        P: NEED_ACK c1
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > cancel c1
      -> P ACK c1 prio=7
    > P: DATA c1 0..1396/100000 unsched=40000
      xx unknown_rpcs
      -> P ACK c1 prio=7
    > P: DATA c1 0..10/10
      xx unknown_rpcs
    > P: NEED_ACK c1
      -> P ACK c1 prio=7
    ");
}

/// TIME-1, TIME-4, HM `homa_incoming.c` `homa_dispatch_pkts`: RPC_UNKNOWN does not count as a sign
/// of life.
#[test]
fn rpc_unknown_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel timeout_usecs=30000
        call P 10
        +9ms
        P: RPC_UNKNOWN c1
        +9ms
        P: RPC_UNKNOWN c1
        +30ms
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > +9ms
      @5.00ms -> P RESEND c1 everything prio=7
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..10/10 retransmit prio=6
    > +9ms
      @1.00ms -> P RESEND c1 everything prio=7
      @6.00ms -> P RESEND c1 everything prio=7
    > P: RPC_UNKNOWN c1
      -> P DATA c1 0..10/10 retransmit prio=6
    > +30ms
      @4.50ms -> P RESEND c1 everything prio=7
      @12.00ms !! failed c1: peer silent for 30 ms after 4 resends; the request may have been executed
      @12.00ms -> P ACK c1 prio=7
    ");
}

/// The profile cannot express a refusal: the server sends nothing.
#[test]
fn an_abandoned_request_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10
        abandon s1
        P: RESEND s1 everything
        P: DATA s1 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > abandon s1
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: DATA s1 0..10/10
      xx finished
    ");
}

/// TIME-7: the kernel profile cannot express "finished". A client that receives RPC_UNKNOWN sends
/// its request again; about a request that the application has abandoned it receives no packet, and
/// gives up. (It used to receive RPC_UNKNOWN, and sent the request again and again.)
#[test]
fn an_abandoned_request_is_not_answered_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..10/10
        abandon s1
        P: RESEND s1 everything
        P: RESEND s2 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > abandon s1
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: RESEND s2 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s2 prio=7
    ");
}

/// AMO-7: a host is not forgotten while it asks for an abandoned request: otherwise the request
/// would be unknown. (Seed 100444 of `--peer-model kernel`: it was sent again, and executed twice.)
#[test]
fn a_host_that_asks_is_not_forgotten_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel peer_idle_secs_min=0 peer_idle_secs_max=2 max_dormant_sessions=0
        P: DATA s1 0..10/10
        abandon s1
        +1500ms
        P: RESEND s1 everything
        +1500ms
        P: RESEND s1 everything
        P: DATA s1 0..10/10 retransmit
        +4000ms
        P: RESEND s1 everything
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > abandon s1
    > +1500ms
    > P: RESEND s1 everything
      xx unknown_rpcs
    > +1500ms
    > P: RESEND s1 everything
      xx unknown_rpcs
    > P: DATA s1 0..10/10 retransmit
      xx finished
    > +4000ms
    > P: RESEND s1 everything
      xx unknown_rpcs
      -> P RPC_UNKNOWN s1 prio=7
    ");
}

/// RPC-13: the kernel profile has no word for a refusal either. (Its clients received RPC_UNKNOWN,
/// sent the request again at once, and so on, as fast as the network went.)
#[test]
fn a_request_too_many_in_the_kernel_profile() {
    assert_snapshot!(run("
        config profile=kernel max_server_rpcs=1
        P: DATA s1 0..10/10
        P: DATA s2 0..10/10
        reply s1 10
        P: ACK s1
        P: DATA s2 0..10/10
    "), @"
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: DATA s2 0..10/10
      xx too_many_rpcs
    > reply s1 10
      -> P DATA s1 0..10/10 prio=6
    > P: ACK s1
    > P: DATA s2 0..10/10
      !! request s2 from P: 10 B
    ");
}

/// WIRE-12: modules of before June 2025 ask for everything with a length of 0.
#[test]
fn an_older_word_for_everything() {
    assert_snapshot!(run("
        config profile=kernel
        call P 10
        +1ms
        P: RESEND c1 0..0
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > +1ms
    > P: RESEND c1 0..0
      -> P DATA c1 0..10/10 retransmit prio=6
    ");
}

/// WIRE-26: a sender that announces no unscheduled bytes has the stripped module: it receives no
/// grants and no cutoffs, and is sent all bytes at once that others would be granted. RESENDs to it
/// are short.
#[test]
fn a_stripped_client() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..1000/100000 unsched=0 cutoffs=0
        P: DATA s1 2000..100000/100000 unsched=0 cutoffs=0
        +9ms
        P: DATA s1 1000..2000/100000 unsched=0 cutoffs=0 retransmit
        reply s1 100000
    "), @"
    > P: DATA s1 0..1000/100000 unsched=0 cutoffs=0
    > P: DATA s1 2000..100000/100000 unsched=0 cutoffs=0
    > +9ms
      @5.00ms -> P RESEND s1 1000..2000 brief prio=7
    > P: DATA s1 1000..2000/100000 unsched=0 cutoffs=0 retransmit
      !! request s1 from P: 100000 B
    > reply s1 100000
      -> P DATA s1 0..58632/100000 packets=42 prio=6
      -> P DATA s1 58632..100000/100000 packets=30 prio=6
    ");
}

/// WIRE-26: a server with the stripped module shows itself by its first RESEND: from then on it is
/// sent all of a message.
#[test]
fn a_stripped_server() {
    assert_snapshot!(run("
        config profile=kernel
        call P 60000
        P: RESEND c1 40000..60000 brief
        call P 60000
        P: GRANT c2 60000
        call P 60000
    "), @"
    > call P 60000
      -> P DATA c1 0..40000/60000 incoming=40000 packets=29 prio=6
    > P: RESEND c1 40000..60000 brief
      -> P BUSY c1 prio=7
      -> P DATA c1 40000..60000/60000 incoming=40000 packets=15 prio=0
    > call P 60000
      -> P DATA c2 0..58632/60000 packets=42 prio=6
      -> P DATA c2 58632..60000/60000 prio=6
    > P: GRANT c2 60000
    > call P 60000
      -> P DATA c3 0..10000/60000 incoming=10000 packets=8 prio=6
    ");
}

/// WIRE-26: the same peer upgraded: it grants, and is granted. PRIO-6: an unlimited level is
/// announced as the longest length that a signed field can hold.
#[test]
fn a_module_that_was_renewed() {
    assert_snapshot!(run("
        config profile=kernel
        P: DATA s1 0..1000/1000 unsched=0 cutoffs=0
        P: DATA s2 0..1396/100000 unsched=1396 cutoffs=0
        reply s1 60000
    "), @"
    > P: DATA s1 0..1000/1000 unsched=0 cutoffs=0
      !! request s1 from P: 1000 B
    > P: DATA s2 0..1396/100000 unsched=1396 cutoffs=0
      -> P CUTOFFS s2 v1 [0, 0, 0, 0, 2147483647, 15000, 2800, 200] prio=7
      -> P GRANT s2 100000 level=0 prio=7
    > reply s1 60000
      -> P DATA s1 0..40000/60000 incoming=40000 packets=29 prio=6
    ");
}

/// HM `homa_incoming.c` `homa_data_pkt` and `homa_need_ack_pkt`: the kernel asks every millisecond
/// for the ack of a response that it has sent. If there is no room for it here, it is requested
/// again when that may help, and not each time. (Found by the simulator: the link of a server with
/// many such responses carried no other traffic.)
#[test]
fn a_response_without_room_is_not_asked_for_each_time() {
    assert_snapshot!(run("
        config profile=kernel max_message=1000 max_receive_bytes=1000 max_receive_bytes_per_peer=1000
        call P 10
        call P 10
        taking off
        P: DATA c1 0..1000/1000
        P: DATA c2 0..1000/1000
        P: NEED_ACK c2
        P: NEED_ACK c2
        take 1000
        +6ms
        P: DATA c2 0..1000/1000 retransmit
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 prio=6
    > call P 10
      -> P DATA c2 0..10/10 prio=6
    > taking off
    > P: DATA c1 0..1000/1000
      !! response c1: 1000 B
    > P: DATA c2 0..1000/1000
      xx no_buffers
    > P: NEED_ACK c2
      -> P BUSY c2 prio=7
    > P: NEED_ACK c2
      -> P BUSY c2 prio=7
    > take 1000
    > +6ms
      @1.00ms -> P ACK c1 prio=7
      @5.00ms -> P RESEND c2 everything prio=7
    > P: DATA c2 0..1000/1000 retransmit
      !! response c2: 1000 B
    ");
}
