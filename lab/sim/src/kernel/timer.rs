//! Periodic work of the module, every millisecond.

use apus_wire::{Body, Role};

use super::event::ModuleEvent;
use super::module::Module;
use super::outgoing::Outgoing;
use super::parameters::HIGHEST;
use super::rpc::{ModuleRpcKey, Rpc, State};
use apus_workload::time::Nanos;

/// Silent ticks before the first RESEND, and between RESENDs (HM `homa_timer.c`
/// `homa_timer_check_rpc`).
const RESEND_TICKS: u32 = 5;
/// Silent ticks until an RPC fails (HM `homa_timer.c` `homa_timer_check_rpc`).
const TIMEOUT_TICKS: u32 = 100;
/// Ticks from the end of a response to the first NEED_ACK; afterwards one is sent per tick (HM
/// `homa_timer.c` `homa_timer_check_rpc`).
const REQUEST_ACK_TICKS: u32 = 2;

/// Action that a tick requires for an RPC.
enum TickAction {
    None,
    Resend,
    Fail,
    NeedAck,
}

impl Module {
    /// Performs the due ticks.
    pub fn handle_timeout(&mut self, now: Nanos) {
        self.now = now;
        while let Some((at, key)) = self.deadlines.first().copied()
            && at <= now
        {
            if let Some(rpc) = self.remove(key) {
                self.events.push_back(ModuleEvent::Failed { cookie: rpc.cookie, late: true });
            }
        }
        // A host that was suspended has missed its ticks.
        if self.next_tick <= now {
            self.next_tick = self.next_tick_after(now);
            self.tick();
        }
    }

    fn tick(&mut self) {
        for key in self.rpcs.keys().copied().collect::<Vec<_>>() {
            let Some(rpc) = self.rpcs.get_mut(&key) else { continue };
            match rpc.tick(key.role) {
                TickAction::None => {}
                TickAction::Resend => self.request_missing(key),
                TickAction::NeedAck => self.send_control(key, Body::NeedAck),
                TickAction::Fail => {
                    if let Some(rpc) = self.remove(key)
                        && key.role == Role::Client
                    {
                        self.events
                            .push_back(ModuleEvent::Failed { cookie: rpc.cookie, late: false });
                    }
                }
            }
        }
        self.grant();
    }

    /// Sends a RESEND for each gap and for the tail, or for everything if no packet has arrived
    /// (HM `homa_incoming.c` `homa_request_retrans`).
    pub(super) fn request_missing(&mut self, key: ModuleRpcKey) {
        let Some(rpc) = self.rpcs.get(&key) else { return };
        let resend =
            |offset, length| apus_wire::Resend { offset, length, priority: HIGHEST, brief: false };
        let wanted: Vec<_> = match &rpc.inc {
            None => vec![resend(0, apus_wire::EVERYTHING)],
            Some(message) => {
                message.wanted().map(|gap| resend(gap.start, gap.end - gap.start)).collect()
            }
        };
        for resend in wanted {
            if !resend.is_everything() {
                // A sender may transmit the bytes that a RESEND requests.
                self.record_allowed(key, resend.end());
            }
            self.send_control(key, Body::Resend(resend));
        }
    }
}

impl Rpc {
    fn tick(&mut self, role: Role) -> TickAction {
        if role == Role::Server && self.state == State::Outgoing {
            let is_sent = self.out.as_ref().is_some_and(Outgoing::is_sent);
            self.done_ticks = if is_sent { self.done_ticks + 1 } else { 0 };
            let asks = self.done_ticks > REQUEST_ACK_TICKS;
            return if asks { TickAction::NeedAck } else { TickAction::None };
        }
        if !self.counts_silence() {
            self.silent_ticks = 0;
            return TickAction::None;
        }
        self.silent_ticks += 1;
        if self.silent_ticks >= TIMEOUT_TICKS {
            TickAction::Fail
        } else if self.silent_ticks.is_multiple_of(RESEND_TICKS) {
            TickAction::Resend
        } else {
            TickAction::None
        }
    }

    /// Returns whether silence of the peer counts (HM `homa_timer.c` `homa_timer_check_rpc`).
    fn counts_silence(&self) -> bool {
        let all_here = self.inc.as_ref().is_some_and(|message| message.outstanding() == 0);
        let sendable = |message: &Outgoing| message.sendable().is_some();
        let unsent = self.may_send() && self.out.as_ref().is_some_and(sendable);
        self.state != State::InService && !all_here && !unsent
    }
}
