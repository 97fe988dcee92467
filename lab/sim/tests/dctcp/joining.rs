//! Convergence of flows to their shares when others join and leave (section 4.1, figure 16).

use apus_workload::time::MILLISECOND;

use super::star::{Plan, Star, fairness};

/// Time for flows to converge to their shares. According to section 3.5, DCTCP takes longer than
/// TCP: 80 to 150 ms at 10 Gbit/s.
const PATIENCE: u64 = 60;

/// Keeps the first `active` senders busy for this number of milliseconds. Returns the share of the
/// link's payload that each of them got in the second half.
fn phase(star: &mut Star, active: u32, milliseconds: u64) -> Vec<f64> {
    let mut acknowledged = vec![0_u64; active as usize];
    for step in 0..milliseconds {
        for from in 1..=active {
            while star.unacknowledged(from) < 3_000_000 {
                star.send(from, 1_000_000);
            }
        }
        let shares = star.shares(MILLISECOND);
        if step >= milliseconds / 2 {
            let both = acknowledged.iter_mut().zip(shares);
            both.for_each(|(sum, share)| *sum += share as u64);
        }
    }
    let link = 1.25e9 * 1_448.0 / 1_538.0 * (milliseconds as f64 / 2_000.0);
    acknowledged.iter().map(|bytes| *bytes as f64 / link).collect()
}

#[test]
fn flows_that_join_and_leave_share_fairly() {
    let plan = Plan { senders: 4, mark_at: Some(40), ..Plan::default() };
    let mut star = plan.build();
    for active in [1, 2, 3, 4, 3, 2, 1] {
        let shares = phase(&mut star, active, PATIENCE);
        let used: f64 = shares.iter().sum();
        assert!((0.98..1.01).contains(&used), "{active}: {shares:?}");
        assert!(fairness(&shares) > 0.95, "{active}: {shares:?}");
    }
    let lost: u64 = (1..=4).map(|from| star.info(from).counters.retransmissions).sum();
    assert_eq!(lost, 0);
}
