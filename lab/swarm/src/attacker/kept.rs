//! Messages that an attacker starts, never completes, and keeps alive: with BUSY, RESEND, single
//! bytes, repeated bytes, or as few bytes as count for progress.

use std::collections::VecDeque;

use apus_sim::message::HostId;
use apus_wire::{Body, Flags, Resend};

use super::contract::HostilePacket;
use super::forge::{About, claim, continuation, control};
use crate::generator::random::SeededRng;

/// Most messages that are kept alive at a time.
const MOST: u64 = 64;
/// Lengths of them. The longest is less than the longest message of hostile scenarios.
const LENGTHS: [u32; 4] = [80_000, 300_000, 900_000, 3_900_000];
/// Signs of life after which a message is left, and another one is started.
const SIGNS: [u64; 2] = [20, 20_000];

/// The messages.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Most messages of this run; drawn at the first packet. In every second run there are none but
    /// responses.
    most: Option<usize>,
    messages: VecDeque<Message>,
    /// Messages whose receiver has sent a RESEND.
    asked: VecDeque<About>,
}

/// A message.
#[derive(Debug)]
struct Message {
    about: About,
    /// Length, bytes of the first packet, sign of life, and number of them; drawn at that packet.
    plan: Option<Plan>,
    /// Offset of the next byte.
    next: u32,
    signs: u64,
}

/// The conduct towards one message.
#[derive(Clone, Copy, Debug)]
struct Plan {
    length: u32,
    sign: Sign,
    signs: u64,
}

/// A sign of life.
#[derive(Clone, Copy, Debug)]
enum Sign {
    Busy,
    Resend,
    Byte,
    /// The last byte once more.
    Again,
    /// As many bytes as count for progress.
    Progress,
    Any,
}

impl Sign {
    const SINGLE: [Self; 5] = [Self::Busy, Self::Resend, Self::Byte, Self::Again, Self::Progress];
    /// Most signs are no progress: otherwise the bytes of the message would take the link.
    const ALL: [Self; 8] = [
        Self::Busy,
        Self::Busy,
        Self::Resend,
        Self::Byte,
        Self::Byte,
        Self::Again,
        Self::Progress,
        Self::Any,
    ];
}

impl Kept {
    /// Returns whether another message is wanted.
    pub(super) fn has_room(&mut self, rng: &mut SeededRng) -> bool {
        let most = *self
            .most
            .get_or_insert_with(|| if rng.percent(50) { rng.scale(1, MOST) as usize } else { 0 });
        self.messages.len() < most
    }

    /// Starts a message.
    pub(super) fn begin(&mut self, about: About) {
        self.messages.push_front(Message { about, plan: None, next: 0, signs: 0 });
    }

    /// Handles a RESEND from `from` to the address `to` of the attacker.
    pub(super) fn answer(&mut self, from: HostId, to: HostId, id: u64) {
        let is_about = |about: &About| (about.from, about.to, about.id) == (to, from, id);
        let message = self.messages.iter().find(|message| is_about(&message.about));
        self.asked.extend(message.map(|message| message.about));
    }

    /// Returns an answer to a RESEND, the first packet of a message, or a sign of life of one.
    pub(super) fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket> {
        if let Some(about) = self.asked.pop_front() {
            return Some(control(rng, about, Flags::NONE, 0, Body::Busy));
        }
        let mut message = self.messages.pop_front()?;
        let about = message.about;
        let Some(plan) = message.plan else {
            let plan = Plan {
                length: rng.one_of(&LENGTHS),
                sign: rng.one_of(&Sign::ALL),
                signs: rng.scale(SIGNS[0], SIGNS[1]),
            };
            let bytes = rng.one_of(&[1, 1, 200, 1_000]);
            (message.plan, message.next) = (Some(plan), bytes);
            self.messages.push_back(message);
            return Some(claim(rng, about, plan.length, bytes));
        };
        let sign = match plan.sign {
            Sign::Any => rng.one_of(&Sign::SINGLE),
            sign => sign,
        };
        // It is never completed.
        let mut bytes = |count: u32, back: u32| {
            let offset = (message.next - back).min(plan.length - 1 - count);
            message.next = offset + count;
            continuation(rng, about, plan.length, (offset, count))
        };
        let packet = match sign {
            Sign::Byte => bytes(1, 0),
            Sign::Again => bytes(1, 1),
            Sign::Progress => bytes(1_000, 0),
            Sign::Busy | Sign::Any => control(rng, about, Flags::NONE, 0, Body::Busy),
            Sign::Resend => {
                let resend = Resend { offset: 0, length: 1, priority: 7, brief: false };
                control(rng, about, Flags::NONE, 0, Body::Resend(resend))
            }
        };
        message.signs += 1;
        if message.signs < plan.signs {
            self.messages.push_back(message);
        }
        Some(packet)
    }
}
