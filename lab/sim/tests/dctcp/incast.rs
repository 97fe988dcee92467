//! Many-to-one traffic with small buffers (section 4.2.1, figure 18).
//!
//! A client requests parts of a megabyte from N servers, and the next megabyte when it has received
//! all parts. The switch has 100 packets for the port, as in the paper.

use apus_sim::Outcome;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

use super::star::Plan;

/// Result of a number of queries.
#[derive(Debug)]
struct Queries {
    mean: Nanos,
    worst: Nanos,
    dropped: u64,
    timeouts: u64,
}

const QUERIES: u64 = 20;

fn ask(servers: u32, mark_at: Option<u64>) -> Queries {
    let plan = Plan { senders: servers, gbps: 1, mark_at, room: 100, ..Plan::default() };
    let mut star = plan.build();
    let mut queries = Queries { mean: 0, worst: 0, dropped: 0, timeouts: 0 };
    for _ in 0..QUERIES {
        let begin = star.fabric.now();
        star.told.clear();
        star.all_send(1_000_000 / servers);
        let answers = |told: &[(_, Outcome)]| {
            told.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Delivered(_))).count()
        };
        while answers(&star.told) < servers as usize {
            queries.dropped += star.run(100 * MICROSECOND).dropped;
        }
        let took = star.fabric.now() - begin;
        queries.mean += took / QUERIES;
        queries.worst = queries.worst.max(took);
    }
    queries.timeouts = (1..=servers).map(|from| star.info(from).counters.timeouts).sum();
    queries
}

/// A megabyte takes 8.5 ms at 1 Gbit/s. With marks there is no delay until the minimum windows of
/// two segments of all servers exceed the switch's buffer; without marks timeouts occur much
/// earlier.
#[test]
fn marks_keep_incast_from_losing() {
    for servers in [10, 20, 35] {
        let (marks, none) = (ask(servers, Some(20)), ask(servers, None));
        assert!(marks.dropped * 4 < none.dropped, "{servers}: {marks:?} against {none:?}");
        assert_eq!(marks.timeouts, 0, "{servers}: {marks:?}");
        assert!(marks.mean < 9_200 * MICROSECOND, "{servers}: {marks:?}");
        assert!(marks.mean < none.mean, "{servers}: {marks:?} against {none:?}");
    }
    assert!(ask(45, None).timeouts > 0);
}

/// Two segments of each of 80 servers do not fit into 100 packets: DCTCP has no remedy for that, as
/// the paper states.
#[test]
fn too_many_servers_overflow_the_buffer_despite_marks() {
    let marks = ask(80, Some(20));
    assert!(marks.timeouts > 0, "{marks:?}");
    assert!(marks.worst > 10 * MILLISECOND, "{marks:?}");
}
