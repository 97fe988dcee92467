//! The receive budget: memory of messages that are being received or wait for the application.
//!
//! A length is only a claim. A message reserves the bytes that may arrive: those received, those
//! its sender announced to send unscheduled (up to the unscheduled window of a peer), and those
//! granted, up to the end of the packet that crosses the granted limit. A message without progress
//! returns the room for missing bytes ([`ReceiveBudget::give_back`]) and reserves it again when
//! more bytes arrive ([`ReceiveBudget::extend`], in `room`).
//!
//! Messages that reserve while they grow could stop each other: all of them half received, no room
//! left, none complete. So at most one of them, the *assured* one, has the room up to its end. The
//! others leave enough room that, when it has ended, another one can be assured.
//!
//! # Invariants
//!
//! - **ROOM-1** `used` is the sum of the reservations, of all messages together, and of the
//!   retained bytes that wait for the application; a host's and a peer's bytes are the sums of
//!   theirs.
//! - **ROOM-2** (CAP-20) When no message is assured, the rest of at least one long message fits as
//!   soon as the application has consumed the complete ones and short messages have ended. A
//!   reservation by a message that is not assured keeps `limit - committed >= longest - length of
//!   the assured message`, where `committed` is `used` plus the bytes kept for the assured message,
//!   so any message fits afterwards. The room of an assured message returns when it ends or is
//!   given up; if it stalls, it fits again, because it has returned its rest. (Short messages need
//!   no room of others.)
//! - **ROOM-3** (CAP-19) Long messages leave an eighth of the budget, and of each host's share, to
//!   short ones.
//! - **ROOM-4** A host or a peer at its limit is not stuck: the rest of the assured message does
//!   not count against these limits, and each waiting message is assured in turn. At most one
//!   message exceeds a limit.

mod room;

pub(crate) use room::ReceiveRoom;

use crate::allowed::Allowed;
use crate::config::Config;
use crate::extent::{charge, extent};
use crate::limits::RESERVE_AT_ONCE;
use crate::message::{Claim, CompleteMessage, MessageIn, Reservation};
use crate::peer::{HostId, PeerId, Peers};
use crate::quota::{Quota, Ranking, Shortage, Size};
use crate::time::Instant;
use apus_wire::Data;

/// The receive budget.
#[derive(Debug)]
pub(crate) struct ReceiveBudget {
    quota: Quota,
    /// Longest message that counts as short.
    window: u64,
    /// Hosts by the bytes reserved for their messages.
    hosts: Ranking<HostId>,
    /// ROOM-1.
    used: u64,
    assured: Option<Assured>,
    /// Length of the longest of the long messages; it may have ended, as long as others are being
    /// received.
    longest: u64,
    /// Number of long messages that are being received.
    long: u64,
    /// Whether messages wait for grants, or packets were dropped, because memory has no room.
    shortage: Shortage,
    /// Whether messages wait for grants because memory, their peer or their host has no room.
    is_waited_for: bool,
    /// Whether room was freed since the last grants: in memory, for a host with waiting messages,
    /// or for assuring another message.
    freed: bool,
}

/// The message that has the room up to its end.
#[derive(Clone, Copy, Debug)]
struct Assured {
    length: u64,
    /// The part not reserved yet.
    left: u64,
}

/// The limit that leaves no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// In `max_receive_bytes`.
    Memory,
    /// In `max_receive_bytes_per_peer`.
    Peer,
    /// In `max_receive_bytes_per_host`.
    Host,
}

/// The first packet of a message, as the budget sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Number of its positions.
    pub(crate) length: u32,
    /// How many of them its sender may send without a GRANT: it has announced them, and the
    /// unscheduled window has room for them.
    pub(crate) announced: Allowed,
    /// How many have arrived.
    pub(crate) arrived: u32,
}

impl Beginning {
    /// The message whose first packet has the header `data`, and `payload` bytes.
    pub(crate) fn of(config: &Config, data: &Data, payload: usize) -> Self {
        let length = extent(data.message_length);
        let arrived = if data.message_length == 0 { length } else { payload as u32 };
        let announced = Allowed::at_most(data.incoming, config.unscheduled_window() as u32);
        Self { length, announced, arrived }
    }
}

/// Hosts are compared in units of this many bytes.
const RANKING_UNIT: u64 = 1 << 16;

impl Claim {
    /// Which part of the room is for such a message.
    const fn size(self) -> Size {
        match self {
            Self::Short => Size::Short,
            Self::Long | Self::Assured => Size::Long,
        }
    }
}

impl ReceiveBudget {
    /// The empty budget of an endpoint with this configuration.
    pub(crate) fn new(config: &Config) -> Self {
        let (all, of_host) = (config.max_receive_bytes(), config.max_receive_bytes_per_host());
        Self {
            quota: Quota::new(all, of_host, config.max_message()),
            window: config.unscheduled_window(),
            hosts: Ranking::new(RANKING_UNIT),
            used: 0,
            assured: None,
            longest: 0,
            long: 0,
            shortage: Shortage::default(),
            is_waited_for: false,
            freed: false,
        }
    }

    /// Reserves room for a new message from `peer` (CAP-8). A complete one needs none: it goes to
    /// the application at once.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        config: &Config,
        peers: &mut Peers,
        peer: PeerId,
        message: Beginning,
    ) -> Result<Reservation, Lack> {
        let all = self.committed() + charge(u64::from(message.length));
        let room = if message.arrived != message.length {
            self.begin_long(config, peers, peer, message)
        } else if all > self.quota.most(Size::Short) {
            Err(Lack::Memory)
        } else {
            Ok(Reservation { positions: 0, claim: Claim::Short })
        };
        if room == Err(Lack::Memory) {
            self.shortage.note(now);
        }
        room
    }

    /// Reserves room for a message that spans several packets.
    // Not needed by messages of one packet, whose path stays short.
    #[inline(never)]
    fn begin_long(
        &mut self,
        config: &Config,
        peers: &mut Peers,
        peer: PeerId,
        message: Beginning,
    ) -> Result<Reservation, Lack> {
        let reservation = self.first_room(config, peers, peer, message)?;
        let (length, positions) = (u64::from(message.length), u64::from(reservation.positions));
        if reservation.claim != Claim::Short {
            self.long += 1;
            self.longest = self.longest.max(length);
        }
        if reservation.claim == Claim::Assured {
            self.assured = Some(Assured { length, left: length - positions });
        }
        self.add(peers, peer, positions);
        Ok(reservation)
    }

    /// The initial reservation of a message.
    fn first_room(
        &self,
        config: &Config,
        peers: &mut Peers,
        peer: PeerId,
        message: Beginning,
    ) -> Result<Reservation, Lack> {
        let Beginning { length, announced, arrived } = message;
        let whole = u64::from(length);
        let window = self.window;
        let (entry, host) = peers.with_host(peer);
        let check = |claim: Claim, bytes: u64| {
            if entry.receive_bytes + bytes > config.max_receive_bytes_per_peer() {
                return Err(Lack::Peer);
            }
            // One message has room, whatever the limit is.
            let share = self.quota.most_of_host(claim.size());
            if host.receive_bytes > 0 && host.receive_bytes + bytes > share {
                return Err(Lack::Host);
            }
            Ok(())
        };
        if whole <= window {
            check(Claim::Short, whole)?;
            let fits = self.committed() + whole <= self.quota.most(Size::Short);
            let reservation = Reservation { positions: length, claim: Claim::Short };
            return fits.then_some(reservation).ok_or(Lack::Memory);
        }
        let limit = self.quota.most(Size::Long);
        let claim = match self.assured {
            None if self.committed() + whole <= limit => Claim::Assured,
            _ => Claim::Long,
        };
        let fits = |positions: u64| {
            let left = self.keeping_free(whole);
            claim == Claim::Assured || self.committed() + positions + left <= limit
        };
        // Memory allocated in one piece is much cheaper than memory that grows. While there is
        // plenty, a message gets all of it, and returns the part that does not arrive.
        let is_plenty = whole <= RESERVE_AT_ONCE as u64
            && self.used + whole <= limit / 4
            && host.receive_bytes + whole <= self.quota.most_of_host(Size::Short) / 4;
        if is_plenty && fits(whole) && check(claim, whole).is_ok() {
            return Ok(Reservation { positions: length, claim });
        }
        let positions = announced.get().min(length).max(arrived);
        check(claim, u64::from(positions))?;
        fits(u64::from(positions)).then_some(Reservation { positions, claim }).ok_or(Lack::Memory)
    }

    /// Assures a long message: keeps room up to its end, unless another message is assured or the
    /// room is missing. Returns whether it is assured now.
    fn assure(&mut self, message: &mut MessageIn) -> bool {
        let reservation = message.reservation();
        let left = u64::from(message.extent() - reservation.positions);
        let possible = reservation.claim == Claim::Long
            && self.assured.is_none()
            && self.committed() + left <= self.quota.most(Size::Long);
        if possible {
            let length = u64::from(message.extent());
            self.assured = Some(Assured { length, left });
            message.reserve(Reservation { claim: Claim::Assured, ..reservation });
        }
        possible
    }

    /// Handles a stalled message from `peer`: it keeps the received bytes and returns the rest.
    /// Returns whether anything changed.
    pub(crate) fn give_back(
        &mut self,
        peers: &mut Peers,
        peer: PeerId,
        message: &mut MessageIn,
    ) -> bool {
        let Reservation { positions, claim } = message.reservation();
        let arrived = message.received().min(positions);
        let claim = match claim {
            Claim::Assured => {
                self.assured_no_more();
                Claim::Long
            }
            other => other,
        };
        self.subtract(peers, peer, u64::from(positions - arrived));
        message.reserve(Reservation { positions: arrived, claim });
        message.stall()
    }

    /// CAP-15: a message from `peer` that was being received is complete. Its retained bytes wait
    /// for the application.
    pub(crate) fn complete(
        &mut self,
        peers: &mut Peers,
        peer: PeerId,
        reservation: Reservation,
        message: &CompleteMessage,
    ) {
        self.end(peers, peer, reservation);
        self.hold(message.payload.len());
    }

    /// A message from `peer` is no longer being received.
    pub(crate) fn end(&mut self, peers: &mut Peers, peer: PeerId, reservation: Reservation) {
        if reservation.claim != Claim::Short {
            self.long -= 1;
            if self.long == 0 {
                self.longest = 0;
            }
        }
        if reservation.claim == Claim::Assured {
            self.assured_no_more();
        }
        self.subtract(peers, peer, u64::from(reservation.positions));
    }

    /// The assured message has ended or stalled: another waiting message, of any peer, may be
    /// assured.
    const fn assured_no_more(&mut self) {
        self.assured = None;
        self.freed |= self.is_waited_for;
    }

    /// CAP-6: a message with `kept` bytes in memory waits for the application.
    pub(crate) const fn hold(&mut self, kept: usize) {
        self.used += charge(kept as u64);
    }

    /// The application has consumed a message with `kept` bytes in memory.
    pub(crate) fn consume(&mut self, kept: usize) {
        let bytes = charge(kept as u64);
        debug_assert!(self.used >= bytes, "more consumed than received");
        self.used -= bytes;
        self.freed |= self.shortage.is_waited_for();
    }

    /// Bytes reserved for messages that are being received, and retained bytes that wait for the
    /// application.
    pub(crate) const fn bytes(&self) -> u64 {
        self.used
    }

    /// Whether grants were held back for lack of room that exists now.
    pub(crate) const fn has_freed_room(&self) -> bool {
        self.freed
    }

    /// Whether a packet found no room in memory in the last `nanos` nanoseconds, or grants find
    /// none.
    pub(crate) fn lacked_room(&self, now: Instant, nanos: u64) -> bool {
        self.shortage.is_felt(now, nanos)
    }

    /// Whether no host has more reserved than the host of `peer`: room is taken from it first.
    pub(crate) fn is_largest(&self, peers: &mut Peers, peer: PeerId) -> bool {
        self.hosts.is_largest(peers.with_host(peer).1.receive_bytes)
    }

    /// A message was given up to make room: messages that need room retry, or report the lack
    /// again.
    pub(crate) const fn room_was_made(&mut self) {
        self.shortage.is_met();
    }

    /// Bytes of memory by which a message with this claim may grow.
    fn memory_for(&self, claim: Claim) -> u64 {
        match claim {
            Claim::Assured => self.assured.map_or(0, |assured| assured.left),
            Claim::Short => self.quota.most(Size::Short).saturating_sub(self.committed()),
            Claim::Long => {
                let kept = self.committed() + self.keeping_free(0);
                self.quota.most(Size::Long).saturating_sub(kept)
            }
        }
    }

    /// Bytes that are used, or kept for the assured message.
    fn committed(&self) -> u64 {
        self.used + self.assured.map_or(0, |assured| assured.left)
    }

    /// The part of the long messages' share that must stay free if this message, or another, has up
    /// to `length` bytes (ROOM-2).
    fn keeping_free(&self, length: u64) -> u64 {
        let assured = self.assured.map_or(0, |assured| assured.length);
        self.longest.max(length).saturating_sub(assured)
    }

    fn add(&mut self, peers: &mut Peers, peer: PeerId, bytes: u64) {
        let (entry, host) = peers.with_host(peer);
        self.used += bytes;
        entry.receive_bytes += bytes;
        self.hosts.change(entry.host(), host.receive_bytes, host.receive_bytes + bytes);
        host.receive_bytes += bytes;
    }

    fn subtract(&mut self, peers: &mut Peers, peer: PeerId, bytes: u64) {
        let (entry, host) = peers.with_host(peer);
        self.used -= bytes;
        entry.receive_bytes -= bytes;
        self.hosts.change(entry.host(), host.receive_bytes, host.receive_bytes - bytes);
        host.receive_bytes -= bytes;
        self.freed |= self.shortage.is_waited_for() | std::mem::take(&mut host.is_waited_for);
    }
}
