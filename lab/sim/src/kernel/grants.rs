//! Grants of the module.
//!
//! The eight messages with the fewest missing bytes share `max_incoming`; the oldest message gets
//! additional grants for its age (docs/reference/homa-module.md, *Grants*).

use apus_wire::{Body, Grant};

use super::module::Module;
use super::rpc::ModuleRpcKey;
use apus_workload::time::{MICROSECOND, Nanos};

/// Most bytes granted and not received (HM `homa_grant.c` `homa_grant_try_send`).
const MAX_INCOMING: u32 = 400_000;
/// Most messages with grants at the same time (HM `homa_grant.c` `homa_grant_find_victim`).
const MAX_OVERCOMMIT: usize = 8;
/// Highest level of scheduled packets (HM `homa_utils.c` `homa_init`).
const MAX_SCHED_PRIO: usize = 3;
/// Level of grants for age, the second highest (HM `homa_grant.c` `homa_grant_check_fifo`).
const FIFO_LEVEL: u8 = 6;
/// Bytes of one grant for age.
const FIFO_INCREMENT: u32 = 50_000;
/// Transmission time of these bytes at 5 % of 25 Gbit/s.
const FIFO_INTERVAL: Nanos = 320 * MICROSECOND;

impl Module {
    /// Sends the GRANTs that are due after a batch of packets.
    pub(super) fn grant(&mut self) {
        let mut waiting: Vec<(u32, u64, ModuleRpcKey)> = Vec::new();
        let mut outstanding = 0;
        for key in &self.scheduled {
            let Some(rpc) = self.rpcs.get(key) else { continue };
            let Some(message) = &rpc.inc else { continue };
            outstanding += message.outstanding();
            if message.granted < message.length() {
                waiting.push((message.missing(), rpc.birth, *key));
            }
        }
        if waiting.is_empty() {
            return;
        }
        waiting.sort_unstable();
        let active = waiting.len().min(MAX_OVERCOMMIT);
        let window = MAX_INCOMING / (active as u32 + 1);
        for (rank, (_, _, key)) in waiting.iter().take(active).enumerate() {
            let Some(message) = self.rpcs.get(key).and_then(|rpc| rpc.inc.as_ref()) else {
                continue;
            };
            let wanted = (message.received() + window).min(message.length());
            let more = wanted.saturating_sub(message.granted);
            let room = MAX_INCOMING.saturating_sub(outstanding);
            // HM `homa_grant.c` `homa_grant_priority`: the lowest levels, the highest of them for
            // the shortest message.
            let level = (active - 1 - rank).min(MAX_SCHED_PRIO) as u8;
            outstanding += self.add_grant(*key, more.min(room), level);
        }
        self.grant_oldest(&waiting, window);
    }

    /// Grants to the oldest message (HM `homa_grant.c` `homa_grant_check_fifo`).
    fn grant_oldest(&mut self, waiting: &[(u32, u64, ModuleRpcKey)], window: u32) {
        if self.now < self.next_fifo {
            return;
        }
        let Some((_, _, key)) = waiting.iter().min_by_key(|(_, birth, _)| *birth) else { return };
        let Some(message) = self.rpcs.get(key).and_then(|rpc| rpc.inc.as_ref()) else { return };
        if message.outstanding() < window + 2 * FIFO_INCREMENT {
            self.add_grant(*key, FIFO_INCREMENT, FIFO_LEVEL);
            self.next_fifo = self.now + FIFO_INTERVAL;
        }
    }

    /// Records that the sender may transmit up to `offset`.
    pub(super) fn record_allowed(&mut self, key: ModuleRpcKey, offset: u32) {
        let allowed = self.allowed.entry(key).or_default();
        *allowed = offset.max(*allowed);
    }

    /// Grants up to `more` further bytes of the message. Returns how many were granted.
    fn add_grant(&mut self, key: ModuleRpcKey, more: u32, level: u8) -> u32 {
        let Some(message) = self.rpcs.get_mut(&key).and_then(|rpc| rpc.inc.as_mut()) else {
            return 0;
        };
        let more = more.min(message.length() - message.granted);
        if more > 0 {
            message.granted += more;
            let offset = message.granted;
            self.record_allowed(key, offset);
            self.send_control(key, Body::Grant(Grant { offset, priority: level }));
        }
        more
    }
}
