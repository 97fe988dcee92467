//! Rate limits for work that packets from unverified addresses can cause.

use super::host::Host;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Shortest time between two NO_KEY packets to one address.
pub(super) const NO_KEY_INTERVAL: Duration = Duration::from_millis(100);

/// A handshake costs this many units of the bucket.
const HANDSHAKE: u64 = 1_000_000_000;

/// Time for which a handshake counts as recent. Chosen by us: a bucket is full again by then.
const RECENT: Duration = Duration::from_secs(1);

/// Token bucket. It holds one second's worth.
#[derive(Debug)]
struct Bucket {
    per_second: u64,
    /// Handshakes that may start now, in billionths.
    tokens: u64,
    /// When tokens were last added.
    filled: Duration,
}

impl Bucket {
    const fn new(per_second: u64, now: Duration) -> Self {
        Self { per_second, tokens: per_second.saturating_mul(HANDSHAKE), filled: now }
    }

    /// Takes the token for one handshake, and leaves `reserve` of them. Returns whether there was
    /// one.
    fn take(&mut self, now: Duration, reserve: u64) -> bool {
        let passed = now.saturating_sub(self.filled).as_nanos();
        let gained = u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(self.per_second);
        let most = self.per_second.saturating_mul(HANDSHAKE);
        self.tokens = self.tokens.saturating_add(gained).min(most);
        self.filled = now;
        let needed = reserve.saturating_add(1).saturating_mul(HANDSHAKE);
        let is_allowed = self.tokens >= needed;
        self.tokens -= if is_allowed { HANDSHAKE } else { 0 };
        is_allowed
    }
}

/// Decision about a HELLO that would start a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It starts.
    Start,
    /// The client must present a cookie.
    AskForCookie,
    /// There are no tokens for this client's host.
    Drop,
}

/// The rates at which a server starts handshakes (SEAL-14).
///
/// Clients without a cookie have tokens of their own: forged addresses spend no others.
/// Clients with a cookie receive at their addresses, so that their tokens are shared by host: the
/// first half goes to any host, the second half to hosts that have used less than an equal part of
/// it within the last second.
#[derive(Debug)]
pub(super) struct HandshakeRates {
    unproven: Bucket,
    proven: Bucket,
    /// Handshakes with a cookie within the last second, the oldest first.
    recent: VecDeque<(Duration, Host)>,
    /// Their number for each host.
    by_host: BTreeMap<Host, u64>,
}

impl HandshakeRates {
    pub(super) const fn new(unproven: u64, proven: u64, now: Duration) -> Self {
        Self {
            unproven: Bucket::new(unproven, now),
            proven: Bucket::new(proven, now),
            recent: VecDeque::new(),
            by_host: BTreeMap::new(),
        }
    }

    /// Decides on a handshake with a client of `host`, and takes its token. `has_cookie`: the
    /// client has presented a valid cookie; `must_prove`: it has to.
    pub(super) fn admit(
        &mut self,
        now: Duration,
        host: Host,
        has_cookie: bool,
        must_prove: bool,
    ) -> Admission {
        if !has_cookie {
            let starts = !must_prove && self.unproven.take(now, 0);
            return if starts { Admission::Start } else { Admission::AskForCookie };
        }
        self.forget_old(now);
        let half = self.proven.per_second / 2;
        let used = self.by_host.get(&host).copied().unwrap_or(0);
        let hosts = self.by_host.len() as u64 + u64::from(used == 0);
        let reserve = if used < (half / hosts).max(1) { 0 } else { half };
        if !self.proven.take(now, reserve) {
            return Admission::Drop;
        }
        self.recent.push_back((now, host));
        *self.by_host.entry(host).or_default() += 1;
        Admission::Start
    }

    fn forget_old(&mut self, now: Duration) {
        while let Some((at, host)) = self.recent.front().copied()
            && at + RECENT <= now
        {
            self.recent.pop_front();
            if let Some(count) = self.by_host.get_mut(&host) {
                *count -= 1;
                if *count == 0 {
                    self.by_host.remove(&host);
                }
            }
        }
    }
}

/// When a NO_KEY was last sent to each address.
#[derive(Debug, Default)]
pub(super) struct NoKeyTimes {
    by_address: BTreeMap<SocketAddr, Duration>,
    /// The addresses with their times, the oldest first.
    in_order: VecDeque<(Duration, SocketAddr)>,
}

impl NoKeyTimes {
    /// Returns whether a NO_KEY may be sent to `peer` at `now`, and stores that it is. At most
    /// `capacity` addresses are stored; the oldest gives way: a flood with forged addresses must
    /// not keep NO_KEY from others, and an address that is forgotten early gets less than what was
    /// sent in its name.
    pub(super) fn take(&mut self, now: Duration, peer: SocketAddr, capacity: usize) -> bool {
        let is_over = |at: Duration| now.saturating_sub(at) >= NO_KEY_INTERVAL;
        while let Some((at, oldest)) = self.in_order.front().copied()
            && (is_over(at) || self.in_order.len() >= capacity)
        {
            self.in_order.pop_front();
            self.by_address.remove(&oldest);
        }
        if self.by_address.contains_key(&peer) {
            return false;
        }
        self.by_address.insert(peer, now);
        self.in_order.push_back((now, peer));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const START: Duration = Duration::ZERO;

    fn host(number: u32) -> Host {
        Host::of(IpAddr::from(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn clients_without_a_cookie_spend_no_tokens_of_others() {
        let mut rates = HandshakeRates::new(200, 400, START);
        for n in 0..12_000 {
            let expected = if n < 200 { Admission::Start } else { Admission::AskForCookie };
            assert_eq!(rates.admit(START, host(n), false, false), expected);
        }
        assert_eq!(rates.admit(START, host(1), true, true), Admission::Start);
        assert_eq!(rates.admit(START, host(1), false, true), Admission::AskForCookie);
    }

    /// A host with cookies, which may be a flood, leaves a share to each other one.
    #[test]
    fn a_host_that_takes_all_it_gets_leaves_tokens_to_others() {
        let mut rates = HandshakeRates::new(200, 400, START);
        let mut taken = 0;
        for millis in 0..10_000 {
            let now = Duration::from_millis(millis);
            let admit = |rates: &mut HandshakeRates, number| {
                rates.admit(now, host(number), true, true) == Admission::Start
            };
            taken += (0..12).filter(|_| admit(&mut rates, 1)).count();
            if millis % 100 == 99 {
                assert!(admit(&mut rates, 2) && admit(&mut rates, 3), "at {millis} ms");
            }
        }
        assert!((4_000..4_400).contains(&taken), "the rate is not wasted: {taken}");
    }

    #[test]
    fn no_key_is_sent_to_others_while_addresses_are_forged() {
        let mut times = NoKeyTimes::default();
        let at = |n: u32| SocketAddr::new(Ipv4Addr::from_bits(n).into(), 7);
        for n in 0..5_000 {
            assert!(times.take(START, at(n), 1_024));
        }
        assert!(!times.take(START, at(4_999), 1_024), "once in 100 ms");
        assert!(times.in_order.len() <= 1_024 && times.by_address.len() <= 1_024);
        assert!(times.take(NO_KEY_INTERVAL, at(4_999), 1_024));
    }
}
