//! Fair queueing of flows on the host's own link.
//!
//! Each connection with something to send gets quanta of a few packets in turn. A connection that
//! was idle precedes connections that send all the time, so that a short message does not wait
//! behind long ones. Source: Linux's `fq` (`net/sched/sch_fq.c`) with its defaults, without pacing.
//!
//! # Invariants
//!
//! - **FAIRQUEUE-1**: A flow is in exactly the list that its membership names.

use std::collections::VecDeque;

use super::config::FULL_FRAME;
use apus_workload::time::{MILLISECOND, Nanos};

/// Bytes of a quantum: two full packets. Source: `fq`, `quantum`.
const QUANTUM: i64 = 2 * FULL_FRAME as i64;

/// Bytes of a new flow's first quantum: ten full packets. Source: `fq`, `initial_quantum`.
const INITIAL_QUANTUM: i64 = 10 * FULL_FRAME as i64;

/// Idle time that restores a flow's full quantum. Source: `fq`, `refill_delay`.
const REFILL_DELAY: Nanos = 40 * MILLISECOND;

/// List that a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    None,
    New,
    Old,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    membership: Membership,
    /// Bytes that it may send with its current quantum.
    credit: i64,
    /// Time when it left the lists.
    idle_since: Nanos,
}

/// Flows of a host, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl FairQueue {
    /// Adds a flow with the next number.
    pub(super) fn add(&mut self) {
        let (membership, credit) = (Membership::None, INITIAL_QUANTUM);
        self.flows.push(Flow { membership, credit, idle_since: 0 });
    }

    /// Activates a flow that has something to send.
    pub(super) fn activate(&mut self, flow: u32, now: Nanos) {
        let state = &mut self.flows[flow as usize];
        if state.membership != Membership::None {
            return;
        }
        if now - state.idle_since > REFILL_DELAY {
            state.credit = state.credit.max(QUANTUM);
        }
        state.membership = Membership::New;
        self.new.push_back(flow);
    }

    /// Returns the next flow that may send.
    pub(super) fn next(&mut self, now: Nanos, can_send: impl Fn(u32) -> bool) -> Option<u32> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let flow = *list.front()?;
            let state = &mut self.flows[flow as usize];
            if state.credit <= 0 {
                state.credit += QUANTUM;
                state.membership = Membership::Old;
                list.pop_front();
                self.old.push_back(flow);
            } else if can_send(flow) {
                return Some(flow);
            } else {
                list.pop_front();
                if from_new && !self.old.is_empty() {
                    // Prevents it from returning ahead of the waiting flows.
                    state.membership = Membership::Old;
                    self.old.push_back(flow);
                } else {
                    state.membership = Membership::None;
                    state.idle_since = now;
                }
            }
        }
    }

    /// Charges a flow for a packet.
    pub(super) fn sent(&mut self, flow: u32, wire_bytes: u32) {
        self.flows[flow as usize].credit -= i64::from(wire_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the transmission order of packets of given sizes. Flows without packets cannot send.
    fn order(queue: &mut FairQueue, left: &mut [u32], bytes: &[u32], count: usize) -> Vec<u32> {
        let mut order = Vec::new();
        while order.len() < count
            && let Some(flow) = queue.next(0, |flow| left[flow as usize] > 0)
        {
            left[flow as usize] -= 1;
            queue.sent(flow, bytes[flow as usize]);
            order.push(flow);
        }
        order
    }

    #[test]
    fn flows_share_by_bytes() {
        let mut queue = FairQueue::default();
        (0..2).for_each(|_| queue.add());
        (0..2).for_each(|flow| queue.activate(flow, 0));
        let order = order(&mut queue, &mut [10_000, 10_000], &[1_538, 90], 4_000);
        let bytes: Vec<usize> = [(0, 1_538), (1, 90)]
            .map(|(flow, bytes)| order.iter().filter(|sent| **sent == flow).count() * bytes)
            .into();
        assert!(bytes[0].abs_diff(bytes[1]) < 4_000, "{bytes:?}");
    }

    #[test]
    fn an_idle_flow_precedes_flows_that_send_all_the_time() {
        let mut queue = FairQueue::default();
        (0..3).for_each(|_| queue.add());
        (0..2).for_each(|flow| queue.activate(flow, 0));
        let mut left = [1_000, 1_000, 0];
        order(&mut queue, &mut left, &[1_538; 3], 100);
        left[2] = 3;
        queue.activate(2, 0);
        assert_eq!(order(&mut queue, &mut left, &[1_538; 3], 3), [2, 2, 2]);
        // It has remained in the list of old flows, so that its burst could not starve the others.
        left[2] = 1_000;
        queue.activate(2, 0);
        let order = order(&mut queue, &mut left, &[1_538; 3], 300);
        let share = order.iter().filter(|flow| **flow == 2).count();
        assert!((98..=112).contains(&share), "{share}");
    }

    #[test]
    fn a_flow_without_packets_is_not_selected() {
        let mut queue = FairQueue::default();
        queue.add();
        assert_eq!(queue.next(0, |_| true), None);
        queue.activate(0, 0);
        assert_eq!(queue.next(0, |_| false), None);
        assert_eq!(queue.flows[0].membership, Membership::None);
    }
}
