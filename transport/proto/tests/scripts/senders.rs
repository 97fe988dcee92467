//! Reports about each peer with arriving messages: credit, the part in use, and its backlog.

use crate::script::run;
use insta::assert_snapshot;

/// GRANT-15: the credit is the window, which shrinks by the sender's backlog beyond a step. Granted
/// bytes stay granted.
#[test]
fn the_credit_of_a_busy_sender_shrinks() {
    assert_snapshot!(run("
        config informed_incoming=18000 max_incoming=68000
        meet P
        meet Q
        meet R
        P: DATA s1 0..1000/90000 unsched=1000 wait=0
        Q: DATA s1 0..1000/99000 unsched=1000 wait=0
        senders 9
        P: DATA s1 1000..2000/90000 unsched=1000 wait=16384
        R: DATA s1 0..1000/20000 unsched=1000 wait=0
        senders 9
    "), @"
    > P: DATA s1 0..1000/90000 unsched=1000 wait=0
      -> P GRANT s1 19000 level=0 prio=7
    > Q: DATA s1 0..1000/99000 unsched=1000 wait=0
    > senders 9
      2 of 2:
      P messages=1 credit=18000 used=18000 backlog=Some(0)
      Q messages=1 credit=18000 used=0 backlog=Some(0)
    > P: DATA s1 1000..2000/90000 unsched=1000 wait=16384
      -> Q GRANT s1 15384 level=0 prio=7
    > R: DATA s1 0..1000/20000 unsched=1000 wait=0
      -> R GRANT s1 10000 level=2 prio=7
    > senders 9
      3 of 3:
      P messages=1 credit=4616 used=17000 backlog=Some(16384)
      Q messages=1 credit=18000 used=14384 backlog=Some(0)
      R messages=1 credit=18000 used=9000 backlog=Some(0)
    ");
}

/// Without `informed_incoming`, the credit is the window of GRANT-4, and the reported backlog is
/// not kept.
#[test]
fn senders_are_reported_without_what_they_say_as_well() {
    assert_snapshot!(run("
        config max_incoming=40000 grant_increment=5000
        meet P
        meet Q
        P: DATA s1 0..1000/100000 unsched=1000 wait=9000
        senders 9
        Q: DATA s1 0..1000/100000 unsched=1000 wait=9000
        senders 9
    "), @"
    > P: DATA s1 0..1000/100000 unsched=1000 wait=9000
      -> P GRANT s1 21000 level=0 prio=7
    > senders 9
      1 of 1:
      P messages=1 credit=20000 used=20000 backlog=None
    > Q: DATA s1 0..1000/100000 unsched=1000 wait=9000
      -> Q GRANT s1 14333 level=0 prio=7
    > senders 9
      2 of 2:
      P messages=1 credit=13333 used=20000 backlog=None
      Q messages=1 credit=13333 used=13333 backlog=None
    ");
}

/// One message is active at a time, here the shorter one. The credit of the other one is its
/// earlier grant.
#[test]
fn messages_of_a_peer_add_up() {
    assert_snapshot!(run("
        config max_incoming=40000 grant_increment=5000 max_overcommit=1
        meet P
        P: DATA s1 0..1000/100000 unsched=1000
        P: DATA s2 0..1000/50000 unsched=1000
        senders 9
    "), @"
    > P: DATA s1 0..1000/100000 unsched=1000
      -> P GRANT s1 21000 level=0 prio=7
    > P: DATA s2 0..1000/50000 unsched=1000
      -> P GRANT s2 21000 level=0 prio=7
    > senders 9
      1 of 1:
      P messages=2 credit=40000 used=40000 backlog=None
    ");
}

#[test]
fn those_with_the_most_on_the_way_are_first_and_all_are_counted() {
    assert_snapshot!(run("
        config max_incoming=40000 grant_increment=5000
        meet P
        meet Q
        meet R
        P: DATA s1 0..1000/3000 unsched=1000
        Q: DATA s1 0..1000/8000 unsched=1000
        R: DATA s1 0..1000/5000 unsched=1000
        senders 2
        senders 0
    "), @"
    > P: DATA s1 0..1000/3000 unsched=1000
      -> P GRANT s1 3000 level=0 prio=7
    > Q: DATA s1 0..1000/8000 unsched=1000
      -> Q GRANT s1 8000 level=0 prio=7
    > R: DATA s1 0..1000/5000 unsched=1000
      -> R GRANT s1 5000 level=0 prio=7
    > senders 2
      2 of 3:
      Q messages=1 credit=7000 used=7000 backlog=None
      R messages=1 credit=4000 used=4000 backlog=None
    > senders 0
      0 of 3:
    ");
}

/// GRANT-10: a silent sender has returned its grants. A complete message is no longer reported, and
/// a message of one packet never is.
#[test]
fn silent_senders_have_no_credit_and_complete_messages_are_not_counted() {
    let output = run("
        config max_incoming=40000 grant_increment=5000
        meet P
        P: DATA s2 0..1000/1000
        senders 9
        P: DATA s1 0..1000/8000 unsched=1000
        +50ms
        senders 9
        P: DATA s1 1000..8000/8000 unsched=1000
        senders 9
    ");
    let senders: Vec<&str> = output.split("> senders 9\n").skip(1).collect();
    assert_eq!(senders.len(), 3, "{output}");
    let silent = "  1 of 1:\n  P messages=1 credit=0 used=0 backlog=None\n";
    for (reported, expected) in senders.iter().zip(["  0 of 0:\n", silent, "  0 of 0:"]) {
        assert!(reported.starts_with(expected), "{output}");
    }
}

/// Marks count for the sender of the packets, in any of its messages, also complete ones.
#[test]
fn marks_are_counted_for_each_sender() {
    assert_snapshot!(run("
        config max_incoming=40000 grant_increment=5000
        meet P
        meet Q
        P: DATA s2 0..1000/1000 marked
        P: DATA s1 0..1000/3000 unsched=1000 marked
        Q: DATA s1 0..1000/8000 unsched=1000
        P: DATA s1 1000..2000/3000 unsched=1000
        senders 9
    "), @"
    > P: DATA s2 0..1000/1000 marked
      !! request s2 from P: 1000 B
    > P: DATA s1 0..1000/3000 unsched=1000 marked
      -> P GRANT s1 3000 level=0 prio=7
    > Q: DATA s1 0..1000/8000 unsched=1000
      -> Q GRANT s1 8000 level=0 prio=7
    > P: DATA s1 1000..2000/3000 unsched=1000
    > senders 9
      2 of 2:
      Q messages=1 credit=7000 used=7000 backlog=None
      P messages=1 credit=1000 used=1000 backlog=None marks=2
    ");
}
