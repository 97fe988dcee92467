//! Grants, at the receiver and at the sender. Source: docs/reference/homa-module.md, *GRANT* and
//! *Grants*.

use crate::script::run;
use insta::assert_snapshot;

/// GRANT-6, HM `homa_grant.c` `homa_grant_check_rpc`: one GRANT per message and batch; the window
/// is a share of `max_incoming`.
#[test]
fn grants_follow_the_data() {
    assert_snapshot!(run("
        config max_incoming=40000 grant_increment=5000
        meet P
        P: DATA s1 0..1000/100000 unsched=1000
        P: DATA s1 1000..6000/100000 unsched=1000
        P: DATA s1 6000..7000/100000 unsched=1000
    "), @"
    > P: DATA s1 0..1000/100000 unsched=1000
      -> P GRANT s1 21000 level=0 prio=7
    > P: DATA s1 1000..6000/100000 unsched=1000
      -> P GRANT s1 26000 level=0 prio=7
    > P: DATA s1 6000..7000/100000 unsched=1000
    ");
}

/// GRANT-5: at most half of the socket's capacity is granted, unless `max_incoming` is configured.
/// (Found by seed 15091520564459: granted bytes overflowed the socket of a busy client for 300 ms.)
#[test]
fn granted_bytes_fit_into_half_of_the_socket() {
    let grants = |config: &str, buffer: u32| {
        run(&format!(
            "{config}
            meet P
            buffer {buffer}
            P: DATA s1 0..1000/900000 unsched=1000
            "
        ))
    };
    assert_snapshot!(grants("", 8_000_000), @"
    > buffer 8000000
    > P: DATA s1 0..1000/900000 unsched=1000
      -> P GRANT s1 201000 level=0 prio=7
    ");
    assert_snapshot!(grants("", 400_000), @"
    > buffer 400000
    > P: DATA s1 0..1000/900000 unsched=1000
      -> P GRANT s1 101000 level=0 prio=7
    ");
    assert_snapshot!(grants("", 1_000), @"
    > buffer 1000
    > P: DATA s1 0..1000/900000 unsched=1000
      -> P GRANT s1 21000 level=0 prio=7
    ");
    assert_snapshot!(grants("config max_incoming=300000", 400_000), @"
    > buffer 400000
    > P: DATA s1 0..1000/900000 unsched=1000
      -> P GRANT s1 151000 level=0 prio=7
    ");
}

/// GRANT-1, HM `homa_grant.c` `homa_grant_init_rpc`: unscheduled bytes need no grant.
#[test]
fn no_grant_for_unscheduled_bytes() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..1000/40000 unsched=40000
        live
    "), @"
    > P: DATA s1 0..1000/40000 unsched=40000
    > live
      clients=0 servers=1 peers=1 send=0 receive=40000 grantable=0 incoming=0 sendable=0 timers=1 control=0
    ");
}

/// GRANT-9, HM `homa_incoming.c` `homa_grant_pkt`: the sender continues up to the new limit, and
/// takes the priority from every GRANT.
#[test]
fn a_grant_at_the_sender() {
    assert_snapshot!(run("
        config unsched_bytes=2000 unsched_bytes_min=2000 unsched_bytes_max=2000
        meet P
        call P 20000
        P: GRANT c1 4000 level=3
        P: GRANT c1 3000 level=1
        P: GRANT c1 8000 level=2
        P: GRANT c1 99999 level=0
    "), @"
    > call P 20000
      -> P DATA c1 0..2000/20000 incoming=2000 packets=2 cutoffs=1 prio=4
    > P: GRANT c1 4000 level=3
      -> P DATA c1 2000..4792/20000 incoming=2000 packets=2 cutoffs=1 prio=3
    > P: GRANT c1 3000 level=1
    > P: GRANT c1 8000 level=2
      -> P DATA c1 4792..8980/20000 incoming=2000 packets=3 cutoffs=1 prio=2
    > P: GRANT c1 99999 level=0
      -> P DATA c1 8980..20000/20000 incoming=2000 packets=8 cutoffs=1 prio=0
    ");
}

/// GRANT-9, BAD-3, HM `homa_incoming.c` `homa_grant_pkt`: a GRANT for a message that has arrived,
/// or for an unknown one, is ignored.
#[test]
fn a_grant_that_makes_no_sense() {
    assert_snapshot!(run("
        meet P
        call P 10
        P: DATA c1 0..10/20
        P: GRANT c1 4000 level=3
        P: GRANT c9 4000 level=3
        P: DATA s1 0..10/10
        P: GRANT s1 4000 level=3
    "), @"
    > call P 10
      -> P DATA c1 0..10/10 cutoffs=1 prio=7
    > P: DATA c1 0..10/20
    > P: GRANT c1 4000 level=3
      xx wrong_state
    > P: GRANT c9 4000 level=3
      xx unknown_rpcs
    > P: DATA s1 0..10/10
      !! request s1 from P: 10 B
    > P: GRANT s1 4000 level=3
      xx wrong_state
    ");
}

/// GRANT-2, PRIO-9, HM `homa_grant.c` `homa_grant_find_victim`, `homa_grant_outranks` and
/// `homa_grant_priority`: the shortest messages are active, the shortest has the highest level.
#[test]
fn the_shortest_messages_are_granted_first() {
    assert_snapshot!(run("
        config max_overcommit=2 max_incoming=30000 grant_increment=1000
        meet P
        P: DATA s1 0..1000/90000 unsched=1000
        P: DATA s2 0..1000/50000 unsched=1000
        P: DATA s3 0..1000/30000 unsched=1000
        P: DATA s3 1000..11000/30000 unsched=1000
    "), @"
    > P: DATA s1 0..1000/90000 unsched=1000
      -> P GRANT s1 16000 level=0 prio=7
    > P: DATA s2 0..1000/50000 unsched=1000
      -> P GRANT s2 11000 level=1 prio=7
    > P: DATA s3 0..1000/30000 unsched=1000
      -> P GRANT s3 6000 level=1 prio=7
    > P: DATA s3 1000..11000/30000 unsched=1000
      -> P GRANT s3 16000 level=1 prio=7
    ");
}

/// GRANT-3, HM `homa_grant.c` `homa_grant_find_victim`: a peer with one long message is not kept
/// waiting by another's many short ones.
#[test]
fn slots_are_spread_over_peers() {
    assert_snapshot!(run("
        config max_overcommit=2 max_incoming=30000 grant_increment=1000
        meet P
        meet Q
        P: DATA s1 0..1000/20000 unsched=1000
        P: DATA s2 0..1000/21000 unsched=1000
        Q: DATA s1 0..1000/900000 unsched=1000
        P: DATA s1 1000..10000/20000
        P: DATA s2 1000..10000/21000
        Q: DATA s1 1000..10000/900000
    "), @"
    > P: DATA s1 0..1000/20000 unsched=1000
      -> P GRANT s1 16000 level=0 prio=7
    > P: DATA s2 0..1000/21000 unsched=1000
      -> P GRANT s2 11000 level=0 prio=7
    > Q: DATA s1 0..1000/900000 unsched=1000
      -> Q GRANT s1 6000 level=0 prio=7
    > P: DATA s1 1000..10000/20000
      -> P GRANT s1 20000 level=1 prio=7
      -> Q GRANT s1 11000 level=0 prio=7
    > P: DATA s2 1000..10000/21000
      -> P GRANT s2 20000 level=1 prio=7
    > Q: DATA s1 1000..10000/900000
      -> Q GRANT s1 20000 level=0 prio=7
    ");
}

/// GRANT-5, HM `homa_grant.c` `homa_grant_try_send`: all messages together never have more than
/// `max_incoming` in flight.
#[test]
fn the_total_is_capped() {
    assert_snapshot!(run("
        config max_overcommit=8 max_incoming=20000 window=15000 grant_increment=1000 grant_fifo_fraction=0
        meet P
        P: DATA s1 0..1000/90000 unsched=1000
        live
        P: DATA s2 0..1000/90000 unsched=1000
        live
        P: DATA s1 1000..11000/90000 unsched=1000
        live
        count needy_grants
    "), @"
    > P: DATA s1 0..1000/90000 unsched=1000
      -> P GRANT s1 16000 level=0 prio=7
    > live
      clients=0 servers=1 peers=1 send=0 receive=90000 grantable=1 incoming=15000 sendable=0 timers=1 control=0
    > P: DATA s2 0..1000/90000 unsched=1000
      -> P GRANT s2 6000 level=0 prio=7
    > live
      clients=0 servers=2 peers=1 send=0 receive=180000 grantable=2 incoming=20000 sendable=0 timers=2 control=0
    > P: DATA s1 1000..11000/90000 unsched=1000
      -> P GRANT s1 26000 level=1 prio=7
    > live
      clients=0 servers=2 peers=1 send=0 receive=180000 grantable=2 incoming=20000 sendable=0 timers=2 control=0
    > count needy_grants
      needy_grants=1
    ");
}

/// GRANT-8, PRIO-5, HM `homa_grant.c` `homa_grant_check_fifo`: 5 % of the scheduled bytes go to the
/// oldest message, at the second-highest level.
#[test]
fn the_oldest_message_gets_its_share() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=20000 grant_increment=5000 fifo_grant_increment=1500 grant_fifo_fraction=100
        meet P
        P: DATA s1 0..1000/900000 unsched=1000
        P: DATA s2 0..1000/90000 unsched=1000
        P: DATA s2 1000..11000/90000 unsched=1000
        P: DATA s2 11000..21000/90000 unsched=1000
        count fifo_grant_bytes
    "), @"
    > P: DATA s1 0..1000/900000 unsched=1000
      -> P GRANT s1 11000 level=0 prio=7
    > P: DATA s2 0..1000/90000 unsched=1000
      -> P GRANT s2 11000 level=0 prio=7
    > P: DATA s2 1000..11000/90000 unsched=1000
      -> P GRANT s2 21000 level=0 prio=7
    > P: DATA s2 11000..21000/90000 unsched=1000
      -> P GRANT s1 12500 level=4 prio=7
      -> P GRANT s2 29500 level=0 prio=7
    > count fifo_grant_bytes
      fifo_grant_bytes=1500
    ");
}

/// GRANT-10, chosen by us: a sender that has fallen silent releases its slot and its share of
/// `max_incoming`, and takes them up again with its next packet.
#[test]
fn a_silent_sender_holds_no_grants() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=20000 grant_increment=1000
        meet P
        meet Q
        P: DATA s1 0..1000/50000 unsched=1000
        Q: DATA s1 0..1000/90000 unsched=1000
        live
        +6ms
        live
        P: DATA s1 1000..5000/50000 unsched=1000
        live
    "), @"
    > P: DATA s1 0..1000/50000 unsched=1000
      -> P GRANT s1 11000 level=0 prio=7
    > Q: DATA s1 0..1000/90000 unsched=1000
    > live
      clients=0 servers=2 peers=2 send=0 receive=140000 grantable=2 incoming=10000 sendable=0 timers=2 control=0
    > +6ms
      @5.00ms -> P RESEND s1 1000..11000 prio=7
      @5.00ms -> Q GRANT s1 11000 level=0 prio=7
    > live
      clients=0 servers=2 peers=2 send=0 receive=140000 grantable=1 incoming=10000 sendable=0 timers=2 control=0
    > P: DATA s1 1000..5000/50000 unsched=1000
      -> P GRANT s1 15000 level=0 prio=7
    > live
      clients=0 servers=2 peers=2 send=0 receive=140000 grantable=2 incoming=20000 sendable=0 timers=2 control=0
    ");
}

/// GRANT-11: when a message ends early, its share passes to the others.
#[test]
fn grants_of_an_abandoned_message_are_given_away() {
    assert_snapshot!(run("
        config max_overcommit=1 max_incoming=20000 grant_increment=1000
        meet P
        meet Q
        P: DATA s1 0..1000/50000 unsched=1000
        Q: DATA s1 0..1000/90000 unsched=1000
        P: ACK s1
        live
    "), @"
    > P: DATA s1 0..1000/50000 unsched=1000
      -> P GRANT s1 11000 level=0 prio=7
    > Q: DATA s1 0..1000/90000 unsched=1000
    > P: ACK s1
      -> Q GRANT s1 11000 level=0 prio=7
    > live
      clients=0 servers=1 peers=2 send=0 receive=90000 grantable=1 incoming=10000 sendable=0 timers=1 control=0
    ");
}

/// GRANT-13: an `incoming` of 0, as a stripped kernel sends it, brings a GRANT at once
/// (docs/reference/homa-module.md, *Variants*).
#[test]
fn a_sender_that_announces_nothing() {
    assert_snapshot!(run("
        meet P
        P: DATA s1 0..1000/5000 unsched=0
    "), @"
    > P: DATA s1 0..1000/5000 unsched=0
      -> P GRANT s1 5000 level=0 prio=7
    ");
}

/// GRANT-4: a fixed window is capped at `max_incoming`. (Half of a larger one never fitted, and the
/// message waited forever.)
#[test]
fn a_window_beyond_max_incoming_does_not_stop_grants() {
    assert_snapshot!(run("
        config max_incoming=5000 window=30000 grant_increment=8000 grant_fifo_fraction=0
        meet P
        P: DATA s1 0..1000/20000 unsched=1000
        P: DATA s1 1000..3500/20000 unsched=1000
    "), @"
    > P: DATA s1 0..1000/20000 unsched=1000
      -> P GRANT s1 6000 level=0 prio=7
    > P: DATA s1 1000..3500/20000 unsched=1000
      -> P GRANT s1 8500 level=0 prio=7
    ");
}

/// GRANT-15: a message and those before it have `informed_incoming` bytes in flight, without their
/// senders' backlogs. A shorter message is granted at once, up to half as much again.
#[test]
fn what_waits_at_its_sender_leaves_room_for_others() {
    let output = run("
        config informed_incoming=18000 max_incoming=68000
        meet P
        meet Q
        meet R
        P: DATA s1 0..1000/90000 unsched=1000 wait=0
        Q: DATA s1 0..1000/99000 unsched=1000 wait=0
        P: DATA s1 1000..2000/90000 unsched=1000 wait=16384
        R: DATA s1 0..1000/20000 unsched=1000 wait=0
    ");
    let grants: Vec<&str> = output.lines().filter(|line| line.contains("GRANT")).collect();
    let expected = ["-> P GRANT s1 19000", "-> Q GRANT s1 15384", "-> R GRANT s1 10000"];
    assert_eq!(grants.len(), expected.len(), "{output}");
    for (grant, expected) in grants.iter().zip(expected) {
        assert!(grant.contains(expected), "{output}");
    }
}

/// GRANT-15: a sender that reports no backlog, as versions before WIRE-34, is granted as if no
/// sender reported one.
#[test]
fn senders_that_say_nothing_are_granted_as_before() {
    let output = |config: &str| {
        run(&format!(
            "{config}
            meet P
            meet Q
            P: DATA s1 0..1000/90000 unsched=1000
            Q: DATA s1 0..1000/99000 unsched=1000
            P: DATA s1 1000..20000/90000 unsched=1000
            "
        ))
    };
    let informed = output("config informed_incoming=18000 max_incoming=68000");
    assert_eq!(informed, output("config max_incoming=68000"));
}

/// GRANT-16: a sender reports a full backlog, and has sent it; so do reordered packets. The backlog
/// is capped at the outstanding bytes, so it is granted further. (Found by seed 76.)
#[test]
fn a_sender_that_says_that_too_much_waits_is_granted_on() {
    let output = run("
        config informed_incoming=18000 max_incoming=68000
        meet P
        P: DATA s1 0..1000/90000 unsched=1000 wait=900000
        P: DATA s1 1000..19000/90000 unsched=1000 wait=900000
    ");
    let grants: Vec<&str> = output.lines().filter(|line| line.contains("GRANT")).collect();
    assert!(grants[0].contains("s1 19000") && grants[1].contains("s1 37000"), "{output}");
}

/// GRANT-18: a marked scheduled packet halves, at first, the bytes that its sender may have in
/// flight, and leaves others unaffected. Arriving bytes make room again. Unscheduled packets carry
/// no information about the fabric.
#[test]
fn marks_limit_what_their_sender_has_on_the_way() {
    let output = |config: &str| {
        let output = run(&format!(
            "{config}
            meet P
            meet Q
            P: DATA s1 0..1000/90000 unsched=1000 wait=0 marked
            P: DATA s1 1000..4000/90000 unsched=1000 wait=0 marked
            P: DATA s1 4000..7000/90000 unsched=1000 wait=0
            P: DATA s1 7000..13000/90000 unsched=1000 wait=0
            Q: DATA s1 0..1000/40000 unsched=1000 wait=0
            "
        ));
        let grants = output.lines().filter(|line| line.contains("GRANT"));
        let limits = grants.map(|line| line.split_whitespace().skip(1).step_by(3).take(2));
        limits.map(|words| words.collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let usual = output("config informed_incoming=18000 max_incoming=68000");
    assert_eq!(usual, ["P 19000", "P 22000", "P 25000", "P 31000", "Q 10000"]);
    let heeding = output("config informed_incoming=18000 max_incoming=68000 marked_incoming=1500");
    // 9,000 bytes may be in flight after the mark, and 6,000 are when 13,000 bytes have arrived.
    assert_eq!(heeding, ["P 19000", "P 22000", "Q 19000"]);
}

/// The script of a message of 600,000 bytes whose scheduled packets are all marked: `steps` of
/// 3,000 bytes.
fn marked(config: &str, steps: usize) -> String {
    let mut script = format!(
        "config informed_incoming=18000 max_incoming=68000 marked_incoming=1 {config}
        meet P
        P: DATA s1 0..1000/600000 unsched=1000 wait=0"
    );
    for offset in (1_000..).step_by(3_000).take(steps) {
        script +=
            &format!("\nP: DATA s1 {offset}..{}/600000 unsched=1000 wait=0 marked", offset + 3_000);
    }
    script
}

/// GRANT-18: however many packets are marked, a sender has a step in flight, so that no message
/// waits forever.
#[test]
fn a_sender_whose_packets_are_all_marked_is_granted_on() {
    let output = run(&marked("", 198));
    assert!(output.contains("GRANT s1 598000"), "{output}");
}

/// GRANT-18: a message whose sender reports no backlog is granted in longer steps (GRANT-7) than
/// the smallest limit has room for: its steps are shorter then. (Found with retransmissions in an
/// oversubscribed core, after which no message was granted anything.)
#[test]
fn a_step_of_a_sender_that_says_nothing_fits_into_its_limit() {
    let mut script = marked("grant_fifo_fraction=0", 30);
    script += "\nP: DATA s1 91000..94000/600000 unsched=1000 retransmit";
    let output = run(&script);
    // The least limit, and 1,500 bytes more after a window without marks.
    assert!(output.contains("GRANT s1 98500"), "{output}");
}

/// GRANT-20: the first GRANT of a long message to a receiver with `config`, on a link of 1 Gbit/s,
/// after 200 messages of 1,000 bytes, one in each `gap`: the first half ends the time before them.
fn granted_after(config: &str, gap: &str) -> String {
    let mut script = format!(
        "config informed_incoming=18000 max_incoming=68000 cutoffs_interval_usecs=50 cutoffs_min_messages=100 {config}
        link 1000
        meet P
        "
    );
    for message in 2..202 {
        script += &format!("+{gap}\nP: DATA s{message} 0..1000/1000 cutoffs=1 wait=0\n");
    }
    script += "P: DATA s1 0..128/90000 unsched=128 cutoffs=1 wait=0";
    let output = run(&script);
    let grant = output.lines().find(|line| line.contains("GRANT")).unwrap();
    grant.split_whitespace().nth(4).unwrap().to_owned()
}

/// GRANT-20: with one level, granted bytes get the part of the link that unscheduled ones leave.
/// 1,122 bytes for each message in 15 us are 0.598 of 1 Gbit/s, and 0.402 are free; 10,000 bytes
/// are in flight without them, and at least 1,000.
#[test]
fn unscheduled_bytes_leave_less_on_the_way_if_there_is_one_level() {
    assert_eq!(granted_after("num_priorities=1", "15us"), "4148");
    assert_eq!(granted_after("num_priorities=1", "1ms"), "10038");
    assert_eq!(granted_after("num_priorities=1", "5us"), "1128");
    assert_eq!(granted_after("num_priorities=2", "15us"), "18128");
}
