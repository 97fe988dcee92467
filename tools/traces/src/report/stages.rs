//! Through which stages does an RPC go?
//!
//! A request and its response pass the points below in this order. A stage is the time from one point to the next that
//! the RPC has: a thread that takes its message itself is neither handed it nor woken, and then that stage takes no
//! time. So the stages of an RPC add up to what the client measured, from its call to its return.
//!
//! Of a message of several packets `to_kernel` is when the first one left, `from_kernel` when the batch came that
//! completed it. Where the server's trace is missing, one stage stands for all between the client's packets.

use crate::merge::{Call, Mark};
use apus_trace::Side;
use apus_trace::event::Event;

/// A stage, named after what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stage {
    /// Where it is: `client`, `server` or `network`.
    pub place: &'static str,
    /// What is done, in a word or two.
    pub name: &'static str,
    /// From which event to which, and who had the time.
    pub meaning: &'static str,
}

/// What ends a stage: which side has it, and the event, of the network or of shared memory.
struct Point {
    side: Side,
    event: Event,
    local: Event,
    stage: Stage,
}

const fn point(
    side: Side,
    [event, local]: [Event; 2],
    place: &'static str,
    name: &'static str,
    meaning: &'static str,
) -> Point {
    Point { side, event, local, stage: Stage { place, name, meaning } }
}

use Event::{
    Call as Called, FromKernel, HandedOff, LocalReceived, LocalSent, Parsed, Queued, Reply,
    RequestReturned, Returned, ToKernel, Woken,
};
use Side::{Client, Server};

/// After the first point, which is the client's call.
const POINTS: [Point; STAGES - 1] = [
    point(Client, [Queued; 2], "client", "submit", "call to queued: arguments, the core's lock"),
    point(
        Client,
        [ToKernel, LocalSent],
        "client",
        "send",
        "queued to to_kernel: the send queue, the pacer",
    ),
    point(
        Server,
        [FromKernel, FromKernel],
        "network",
        "request",
        "to_kernel to from_kernel: both kernels, the wire, and until the server looks",
    ),
    point(
        Server,
        [Parsed, LocalReceived],
        "server",
        "receive",
        "from_kernel to parsed: the packets before it, and its own",
    ),
    point(
        Server,
        [HandedOff; 2],
        "server",
        "hand off",
        "parsed to handed_off: queued where it is waited for",
    ),
    point(
        Server,
        [Woken; 2],
        "server",
        "wake up",
        "handed_off to woken: the scheduler, or a spinning thread that sees it",
    ),
    point(
        Server,
        [RequestReturned; 2],
        "server",
        "return",
        "to request_returned: the lock again, the message to the application",
    ),
    point(
        Server,
        [Reply; 2],
        "server",
        "service",
        "request_returned to reply: the application's work",
    ),
    point(Server, [Queued; 2], "server", "submit", "reply to queued"),
    point(Server, [ToKernel, LocalSent], "server", "send", "queued to to_kernel"),
    point(Client, [FromKernel; 2], "network", "response", "to_kernel to from_kernel"),
    point(Client, [Parsed, LocalReceived], "client", "receive", "from_kernel to parsed"),
    point(Client, [HandedOff; 2], "client", "hand off", "parsed to handed_off"),
    point(Client, [Woken; 2], "client", "wake up", "handed_off to woken"),
    point(Client, [Returned; 2], "client", "return", "to returned: the message to the application"),
];

/// Number of stages; the last one stands for network and server where the server's trace is missing.
pub const STAGES: usize = 16;

/// Where the last one is shown: before the client receives.
const BEYOND: Stage = Stage {
    place: "network",
    name: "and server",
    meaning: "to_kernel to from_kernel of the client; name the server's trace to see more",
};

/// Number of [`BEYOND`].
const BEYOND_AT: usize = STAGES - 1;

/// A stage by its number.
#[must_use]
pub fn stage(number: usize) -> Stage {
    POINTS.get(number).map_or(BEYOND, |point| point.stage)
}

/// The numbers of all stages, in the order in which they happen.
pub fn in_order() -> impl Iterator<Item = usize> {
    let server = POINTS.iter().position(|point| point.stage.place == "network").unwrap_or(0);
    (0..server).chain([BEYOND_AT]).chain(server..BEYOND_AT)
}

/// How long each stage of an RPC took in nanoseconds; `None` for those that it has not. `None` altogether if the trace
/// does not have it from its call to its return.
#[must_use]
pub fn stages(call: &Call) -> Option<[Option<i64>; STAGES]> {
    let mut previous = call.first(Client, Called)?;
    call.first(Client, Returned)?;
    let mut all = [None; STAGES];
    for (number, point) in POINTS.iter().enumerate() {
        let Some(mark) = point.mark(call) else { continue };
        let beyond = previous.side == Client
            && point.side == Client
            && matches!(point.event, FromKernel | Parsed)
            && matches!(previous.event, ToKernel | LocalSent);
        all[if beyond { BEYOND_AT } else { number }] = Some(mark.at - previous.at);
        previous = mark;
    }
    Some(all)
}

/// Whether it went through shared memory rather than the network.
#[must_use]
pub fn is_local(call: &Call) -> bool {
    call.has(LocalSent) || call.has(LocalReceived)
}

impl Point {
    fn mark<'a>(&self, call: &'a Call) -> Option<&'a Mark> {
        match self.event {
            // Of the batches that came, the one that completed the message.
            FromKernel => {
                let whole = call.first(self.side, Parsed)?;
                call.last_until(self.side, FromKernel, whole.at)
            }
            event => call.first(self.side, event).or_else(|| call.first(self.side, self.local)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_shown_once() {
        let mut order: Vec<usize> = in_order().collect();
        assert_eq!(stage(order[2]), BEYOND, "after the client has sent");
        order.sort_unstable();
        assert_eq!(order, (0..STAGES).collect::<Vec<_>>());
    }
}
