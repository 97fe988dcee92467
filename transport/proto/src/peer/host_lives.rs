//! The lives of a client host in the kernel profile.
//!
//! A module counts its calls from 2 (HM `homa_utils.c` `homa_init`), and starts over when its host
//! restarts or the module is reloaded. Its packets do not show that: there are no sessions. A
//! server that keeps the ids of finished requests would take the new calls for late duplicates, and
//! one that forgets them would execute late duplicates. Signs of a new life (requirement AMO-10):
//!
//! - *No version of the cutoffs* in a packet with a new id, although the host has had the version
//!   for [`PACKET_LIFE`]: a module forgets it only with its peers, and then its ids continue. A
//!   late packet of its first requests, which had no version, does not arrive so late.
//! - *Other contents* under an id that was used before: length, port, or first bytes. Of the last
//!   [`RECENT`] requests.
//! - *A closed port*: ICMP reported that the port of the call's client is closed. After
//!   [`PACKET_LIFE`] no packet of that client is in flight, so any further one is about a call of
//!   the next life. A RESEND for the whole response is a sign at once: no client without a socket
//!   waits for a response. Of the last [`RECENT`] requests as well.
//! - *A client that asks for what it has acked*: two RESENDs for the whole response within
//!   [`ASKING`], [`PACKET_LIFE`] after the ack.
//! - *Time*: ids of a module are forgotten [`FORGET_AFTER`] after the last packet about them. Its
//!   client gives up within a tenth of that (HM `homa_timer.c` `homa_timer_check_rpc`).
//!
//! Each counter of a host ([`SparseIds`]) has its own lives: the endpoints of apus on a host start
//! and end independently, and never reuse an id (ADR 12), so their ids are not forgotten with time.
//!
//! # Invariants
//!
//! - **LIVES-1** An id that is finished in the present life of its counter stays so while it is
//!   remembered; one that is finished in an earlier life has no meaning in the present one.
//! - **LIVES-2** A life ends only by a packet of its host, never by time alone.

use super::SparseIds;
use super::sparse_ids::counter_of;
use crate::time::Instant;
use foldhash::fast::FixedState;
use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;

const SECOND: u64 = 1_000_000_000;

/// Longest time that a packet is in flight, in nanoseconds. Chosen by us: queues of a datacenter
/// hold packets for milliseconds, and no host restarts in less.
const PACKET_LIFE: u64 = SECOND;

/// Time after which a finished id of a module is forgotten, in nanoseconds. Chosen by us: the
/// module gives up a call after 100 ms, or after 1 s with the setting that docs/interop.md
/// recommends.
const FORGET_AFTER: u64 = 5 * SECOND;

/// Requests of a host that are remembered with their first packets and ends. Chosen by us: for hosts
/// that have not made enough calls to receive the version of the cutoffs.
const RECENT: usize = 64;

/// Longest time between two RESENDs of one call, in nanoseconds: a module asks every 5 ms, and gives
/// up after 100 ms (HM `homa_timer.c` `homa_timer_check_rpc`).
const ASKING: u64 = SECOND / 10;

/// Leading bytes of a request that are compared. The smallest path carries more in a packet.
const BEGINNING: usize = 64;

/// The counter of modules, whose ids are small.
const MODULE: u64 = 0;

/// A DATA packet of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSign {
    pub(crate) id: u64,
    /// Port of the client.
    pub(crate) port: u16,
    /// The version of the cutoffs that its sender has received; 0 if none.
    pub(crate) version: u16,
    /// Digest of the request, if this is its first packet.
    pub(crate) digest: Option<u64>,
    /// When it arrived at the earliest: it may have waited in the socket.
    pub(crate) arrived: Instant,
}

/// Returns the digest of a request of `length` bytes from client port `port`, by its first packet;
/// `None` if the packet has too few bytes to distinguish requests.
pub(crate) fn digest(port: u16, length: u32, offset: u32, payload: &[u8]) -> Option<u64> {
    let beginning = BEGINNING.min(length as usize);
    (offset == 0 && payload.len() >= beginning)
        .then(|| FixedState::default().hash_one((port, length, &payload[..beginning])))
}

/// The requests of a host, in the present lives of its counters.
#[derive(Debug, Default)]
pub(crate) struct HostLives {
    finished: SparseIds,
    lives: BTreeMap<u64, Life>,
    /// The latest requests.
    recent: VecDeque<RecentRequest>,
    next_number: u64,
    /// When old ids are looked for next.
    next_scan: Instant,
}

/// One of the latest requests of a host.
#[derive(Clone, Copy, Debug)]
struct RecentRequest {
    id: u64,
    port: u16,
    digest: u64,
    /// When its client has acked it.
    acked: Option<Instant>,
    /// When ICMP has reported that its client's port is closed.
    port_closed: Option<Instant>,
    /// When a RESEND for the whole response arrived last.
    asked: Option<Instant>,
    /// Whether a client has asked for a response that its earlier life cannot lack.
    is_asked_anew: bool,
}

impl RecentRequest {
    /// Returns whether a DATA packet that arrived at `arrived` is about a call of the next life.
    fn is_reused(&self, arrived: Instant) -> bool {
        self.is_asked_anew || is_past(self.port_closed, arrived)
    }

    /// A RESEND for the whole response has arrived.
    fn note_asked(&mut self, arrived: Instant) {
        let asks = self.asked.is_some_and(|before| arrived.since(before) < ASKING);
        self.is_asked_anew |= self.port_closed.is_some() || (asks && is_past(self.acked, arrived));
        self.asked = Some(arrived);
    }
}

/// Returns whether all packets that left before `since` are gone at `arrived`.
fn is_past(since: Option<Instant>, arrived: Instant) -> bool {
    since.is_some_and(|since| arrived.since(since) >= PACKET_LIFE)
}

/// One life of a counter.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    highest: u64,
    /// Since when the host has known the version of the cutoffs.
    version_since: Option<Instant>,
}

impl HostLives {
    /// Records a packet of a request. Returns the number of its life, and of the life that it has
    /// ended, if any.
    pub(crate) fn note(&mut self, sign: RequestSign) -> (u64, Option<u64>) {
        let RequestSign { id, port, version, digest, arrived } = sign;
        self.forget_old(arrived);
        let before = self.life(id);
        let life = if self.is_renewed(before, sign) {
            self.finished.forget(counter_of(id));
            self.recent.retain(|other| counter_of(other.id) != counter_of(id));
            self.begin(id)
        } else {
            before
        };
        let version_since = match life.version_since {
            // The host has forgotten this peer, and continues counting.
            Some(_) if version == 0 && id > life.highest => None,
            None if version != 0 => Some(arrived),
            since => since,
        };
        let highest = id.max(life.highest);
        self.lives.insert(counter_of(id), Life { number: life.number, highest, version_since });
        if let Some(digest) = digest {
            // Shorter requests overtake longer ones: an id below the highest one is not necessarily
            // known.
            if id > life.highest || self.recent_request(id).is_none() {
                self.remember(RecentRequest {
                    id,
                    port,
                    digest,
                    acked: None,
                    port_closed: None,
                    asked: None,
                    is_asked_anew: false,
                });
            }
        }
        (life.number, (life.number != before.number).then_some(before.number))
    }

    /// Returns the number of the life that request `id` belongs to.
    pub(crate) fn number_of(&mut self, id: u64) -> u64 {
        self.life(id).number
    }

    /// Whether request `id` is finished.
    pub(crate) fn is_finished(&self, id: u64) -> bool {
        self.finished.contains(id)
    }

    /// Request `id` of life `number` will not be executed (again). Returns whether that takes memory.
    pub(crate) fn finish(&mut self, number: u64, id: u64, now: Instant) -> bool {
        self.life(id).number == number && self.finished.insert(id, now)
    }

    /// A packet about request `id` has arrived. Returns whether the request is finished; then it is
    /// remembered for longer.
    pub(crate) fn touch(&mut self, id: u64, arrived: Instant, now: Instant) -> bool {
        self.forget_old(arrived);
        let is_finished = self.finished.contains(id);
        if is_finished {
            self.finished.insert(id, now);
        }
        is_finished
    }

    /// The client has acked the response to request `id`, or does not want it.
    pub(crate) fn acked(&mut self, id: u64, now: Instant) {
        if let Some(request) = self.recent_request(id) {
            request.acked.get_or_insert(now);
        }
    }

    /// ICMP has reported that `port` of the host is closed: its calls are dropped.
    pub(crate) fn port_closed(&mut self, port: u16, now: Instant) {
        let of_module = |request: &&mut RecentRequest| counter_of(request.id) == MODULE;
        for request in self.recent.iter_mut().filter(of_module).filter(|it| it.port == port) {
            request.port_closed.get_or_insert(now);
        }
    }

    /// A RESEND for the whole response to the finished request `id` has arrived. Returns whether it
    /// is about a call of the next life.
    pub(crate) fn asked_anew(&mut self, id: u64, arrived: Instant) -> bool {
        if counter_of(id) != MODULE {
            return false;
        }
        let Some(request) = self.recent_request(id) else { return false };
        request.note_asked(arrived);
        request.is_reused(arrived)
    }

    fn recent_request(&mut self, id: u64) -> Option<&mut RecentRequest> {
        self.recent.iter_mut().find(|request| request.id == id)
    }

    /// The memory of the lives, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let lives = self.lives.len() * 2 * (size_of::<u64>() + size_of::<Life>());
        self.finished.memory() + lives + self.recent.capacity() * size_of::<RecentRequest>()
    }

    /// The host is idle at `now`: old ids of modules are forgotten, and all ids of endpoints of apus
    /// up to the highest finished one count as finished.
    pub(crate) fn rest(&mut self, now: Instant) {
        let limit = now.as_nanos().saturating_sub(FORGET_AFTER);
        self.finished.forget_before(MODULE, Instant::from_nanos(limit));
        self.finished.close_gaps(now);
        let finished = &self.finished;
        self.recent.retain(|it| counter_of(it.id) == MODULE && finished.contains(it.id));
        self.recent.shrink_to_fit();
    }

    /// Closes half of the finished ids, the oldest: all up to them count as finished.
    pub(crate) fn close_some(&mut self, now: Instant) {
        self.finished.close_half(now);
    }

    /// Forgets finished ids of a module after a long time without packets about them.
    fn forget_old(&mut self, arrived: Instant) {
        if arrived >= self.next_scan {
            self.next_scan = arrived.plus(SECOND);
            let limit = arrived.as_nanos().saturating_sub(FORGET_AFTER);
            self.finished.forget_before(MODULE, Instant::from_nanos(limit));
        }
    }

    fn is_renewed(&self, life: Life, sign: RequestSign) -> bool {
        if sign.id > life.highest {
            return false;
        }
        let known =
            life.version_since.is_some_and(|since| sign.arrived.since(since) >= PACKET_LIFE);
        (sign.version == 0 && known) || self.is_other_call(sign)
    }

    /// Whether a request with this id had another digest, or its client has dropped it.
    fn is_other_call(&self, sign: RequestSign) -> bool {
        let is_module = counter_of(sign.id) == MODULE;
        let differs = |before| sign.digest.is_some_and(|digest| digest != before);
        self.recent
            .iter()
            .filter(|before| before.id == sign.id)
            .any(|before| differs(before.digest) || (is_module && before.is_reused(sign.arrived)))
    }

    fn remember(&mut self, request: RecentRequest) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(request);
    }

    /// The present life of the counter of `id`.
    fn life(&mut self, id: u64) -> Life {
        match self.lives.get(&counter_of(id)) {
            Some(life) => *life,
            None => self.begin(id),
        }
    }

    /// Starts a life of the counter of `id`, without finished ids.
    fn begin(&mut self, id: u64) -> Life {
        let life = Life { number: self.next_number, highest: 0, version_since: None };
        self.next_number = self.next_number.wrapping_add(1);
        self.lives.insert(counter_of(id), life);
        life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const fn sign(id: u64, version: u16, millis: u64) -> RequestSign {
        RequestSign { id, port: 0x8000, version, digest: None, arrived: at(millis) }
    }

    /// A module that has made `calls` calls since 0 ms, one per millisecond, and has the version
    /// since the second one.
    fn after(calls: u64) -> HostLives {
        let mut lives = HostLives::default();
        for call in 0..calls {
            let now = at(call);
            let version = u16::from(call > 0);
            assert_eq!(lives.note(sign(2 + 2 * call, version, call)), (0, None));
            lives.finish(0, 2 + 2 * call, now);
        }
        lives
    }

    /// AMO-10: the module was reloaded.
    #[test]
    fn a_host_without_a_version_counts_anew() {
        let mut lives = after(500);
        assert!(lives.is_finished(2));
        assert_eq!(lives.note(sign(2, 0, 1_500)), (1, Some(0)));
        assert!(!lives.is_finished(2) && !lives.is_finished(400));
        // Live requests of the old life end, and are no sign about the new one.
        lives.finish(0, 4, at(1_500));
        assert!(!lives.is_finished(4));
        assert_eq!(lives.note(sign(4, 0, 1_500)), (1, None), "two calls at the same time");
        assert_eq!(lives.note(sign(6, 1, 1_501)), (1, None));
        lives.finish(1, 6, at(1_501));
        assert!(lives.is_finished(6));
        // And once more.
        assert_eq!(lives.note(sign(6, 0, 9_000)), (2, Some(1)));
    }

    /// AMO-10: a copy of a first request may be late, and packets may wait in the socket.
    #[test]
    fn a_late_copy_of_a_first_request_begins_nothing() {
        let mut lives = after(500);
        assert_eq!(lives.note(sign(2, 0, 900)), (0, None));
        assert!(lives.is_finished(2));
    }

    /// HM `homa_peer.c` `homa_peer_gc`: a module that has forgotten this host has no version, and
    /// continues counting.
    #[test]
    fn a_host_that_has_forgotten_this_one_lives_on() {
        let mut lives = after(500);
        for id in [1_202, 1_206, 1_204] {
            assert_eq!(lives.note(sign(id, 0, 200_000)), (0, None), "{id}");
        }
        assert_eq!(lives.note(sign(1_208, 1, 200_001)), (0, None));
        assert_eq!(lives.note(sign(1_204, 0, 200_900)), (0, None), "a late copy");
        assert_eq!(lives.note(sign(1_204, 0, 201_001)), (1, Some(0)));
    }

    /// AMO-10: a host that has made a single call has no version yet.
    #[test]
    fn other_contents_tell_a_restart() {
        let mut lives = HostLives::default();
        let request = |length, payload: &[u8]| RequestSign {
            digest: digest(0x8000, length, 0, payload),
            ..sign(2, 0, 1)
        };
        assert_eq!(lives.note(request(5, b"hello")), (0, None));
        lives.finish(0, 2, at(1));
        assert_eq!(lives.note(request(5, b"hello")), (0, None), "a copy");
        assert_eq!(lives.note(request(9_000, b"hello")), (0, None), "too little of it");
        assert!(lives.is_finished(2));
        assert_eq!(lives.note(request(5, b"world")), (1, Some(0)));
        assert!(!lives.is_finished(2));
        let mut long = vec![7; 1_400];
        assert_eq!(lives.note(request(3_000, &long)), (2, Some(1)));
        long[BEGINNING] = 8;
        assert_eq!(lives.note(request(3_000, &long)), (2, None), "only the beginning is compared");
        let other_port = digest(0x8001, 3_000, 0, &long);
        assert_eq!(lives.note(RequestSign { digest: other_port, ..sign(2, 0, 1) }).0, 3);
    }

    /// The only call of a boot, and the same call of the next one.
    fn only_call(millis: u64) -> RequestSign {
        RequestSign { digest: digest(0x8000, 5, 0, b"hello"), ..sign(2, 0, millis) }
    }

    /// AMO-10: the client's host makes one call, is restarted, and makes the same call.
    #[test]
    fn a_call_of_a_closed_port_is_another_one_when_its_packets_are_gone() {
        let mut lives = HostLives::default();
        assert_eq!(lives.note(only_call(1)), (0, None));
        lives.finish(0, 2, at(10));
        lives.port_closed(0x8000, at(10));
        assert_eq!(lives.note(only_call(1_009)), (0, None), "it may be a late copy");
        assert!(lives.is_finished(2));
        assert_eq!(lives.note(only_call(1_010)), (1, Some(0)));
        assert!(!lives.is_finished(2));
        lives.finish(1, 2, at(1_010));
        assert_eq!(lives.note(only_call(3_000)), (1, None), "this port is open");
    }

    /// AMO-10: no client needs what it has acked.
    #[test]
    fn resends_after_the_ack_tell_a_restart_when_late_ones_are_gone() {
        let mut lives = HostLives::default();
        lives.note(only_call(1));
        lives.finish(0, 2, at(10));
        lives.acked(2, at(10));
        for millis in [20, 25, 30, 1_005, 1_200] {
            assert!(!lives.asked_anew(2, at(millis)), "{millis}");
            assert_eq!(lives.note(only_call(millis)), (0, None), "{millis}");
        }
        assert!(lives.asked_anew(2, at(1_205)));
        assert_eq!(lives.note(only_call(1_206)), (1, Some(0)));
    }

    /// AMO-10: no client without a socket waits for a response.
    #[test]
    fn a_resend_after_icmp_tells_a_restart_at_once() {
        let mut lives = HostLives::default();
        lives.note(only_call(1));
        lives.finish(0, 2, at(2));
        assert!(!lives.asked_anew(2, at(3)), "the client may lack the response");
        lives.port_closed(0x8001, at(4));
        assert!(!lives.asked_anew(2, at(5)), "another port");
        lives.acked(2, at(6));
        assert!(!lives.asked_anew(2, at(7)), "it may have been late");
        lives.port_closed(0x8000, at(8));
        assert_eq!(lives.note(only_call(9)), (0, None), "it may be a late copy");
        assert!(lives.asked_anew(2, at(10)));
        assert_eq!(lives.note(only_call(11)), (1, Some(0)));
        assert!(!lives.is_finished(2));
    }

    /// An endpoint of apus uses no id twice.
    #[test]
    fn only_the_ids_of_modules_are_used_again() {
        let id = 1 << 63 | 2;
        let mut lives = HostLives::default();
        lives.note(RequestSign { id, ..only_call(1) });
        lives.finish(0, id, at(2));
        lives.acked(id, at(2));
        lives.port_closed(0x8000, at(2));
        assert!(!lives.asked_anew(id, at(60_000)));
        assert_eq!(lives.note(RequestSign { id, ..only_call(60_000) }), (0, None));
        assert!(lives.is_finished(id));
    }

    /// A module sends the shortest request first.
    #[test]
    fn requests_that_were_overtaken_are_compared_as_well() {
        let mut lives = HostLives::default();
        let request = |id, payload: &[u8]| RequestSign {
            digest: digest(0x8000, payload.len() as u32, 0, payload),
            ..sign(id, 0, 1)
        };
        for (id, payload) in [(4, b"b"), (2, b"a"), (6, b"c")] {
            assert_eq!(lives.note(request(id, payload)), (0, None));
        }
        assert_eq!(lives.note(request(2, b"a")), (0, None), "a copy");
        assert_eq!(lives.note(request(2, b"z")), (1, Some(0)));
    }

    /// AMO-10: no sign shows that the host was restarted.
    #[test]
    fn ids_of_a_module_are_forgotten_when_its_client_has_given_up() {
        let mut lives = after(1);
        lives.note(sign(1 << 63, 1, 2));
        lives.finish(1, 1 << 63, at(2));
        assert!(lives.touch(2, at(4_000), at(4_000)));
        assert!(lives.touch(2, at(8_500), at(8_500)), "its client still asks");
        assert!(!lives.touch(2, at(15_000), at(15_000)));
        assert!(
            lives.touch(1 << 63, at(60_000), at(60_000)),
            "an endpoint of apus uses no id twice"
        );
    }

    /// Endpoints of one host start and end alone.
    #[test]
    fn each_counter_has_a_life_of_its_own() {
        let mut lives = after(500);
        let base = 1 << 63 | 1 << 52;
        assert_eq!(lives.note(sign(base, 0, 600)), (1, None));
        assert_eq!(lives.note(sign(base + 2, 1, 600)), (1, None));
        lives.finish(1, base, at(600));
        assert_eq!(lives.note(sign(4, 0, 2_000)), (2, Some(0)), "the module");
        assert!(lives.is_finished(base));
        assert_eq!(lives.number_of(base), 1);
        assert_eq!(lives.note(sign(base + 1_000, 0, 3_000)), (1, None), "the next process");
    }
}
