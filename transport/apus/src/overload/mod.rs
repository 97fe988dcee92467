//! Cures for receive livelock, for loops that receive packets: quotas, feedback from queues, a
//! share of the core.
//!
//! Under overload, a loop that receives whenever a packet is available does no other work: it
//! processes packets only to drop them at a full queue, and throughput falls towards zero. This is
//! *receive livelock* (J. Mogul and K. Ramakrishnan, "Eliminating Receive Livelock in an
//! Interrupt-Driven Kernel", USENIX 1996 and ACM TOCS 15(3), 1997). Their cures:
//!
//! | type | bounds | at the bound |
//! |---|---|---|
//! | [`Budget`] | the work of each kind in one pass of the loop | the loop continues with the next kind |
//! | [`Feedback`] | the queue towards the application | receiving stops until the application has caught up |
//! | [`CoreShare`] | the share of a core that the loop uses | receiving stops until the period ends |
//!
//! Endpoints of [apus](https://docs.rs/apus) have all of this built in; only the share of a core
//! can be set there (`EndpointBuilder::core_share`). The types are public for loops that receive
//! from other sockets, such as a router or a proxy. Their [`Instant`] is a number of nanoseconds
//! since any origin: the caller reads the clock once per pass.
//!
//! Packets that are not received stay in the kernel's socket buffer. The kernel drops the excess at
//! once, which is the cheapest place: no work has been spent on it.
//!
//! ```
//! use apus::overload::{Budget, CoreShare, Feedback, Instant, Quotas, Work};
//! use std::time::Duration;
//!
//! let mut budget = Budget::new(Quotas::default());
//! let mut feedback = Feedback::new(32);
//! let mut share = CoreShare::of_percent(50);
//! # let (mut now, mut queue, mut socket) = (0, 0, 100);
//! # for _ in 0..10 {
//! // One pass of a loop, at `now`:
//! let start = Instant::from_nanos(now);
//! budget.begin();
//! if share.until(start).is_none() && feedback.check(queue, start) {
//!     let received = budget.left(Work::Receive).min(socket);
//!     budget.spend(Work::Receive, received);
//!     socket -= received;
//!     queue += received;
//! }
//! now += 10_000;
//! share.charge(Duration::from_micros(10), Instant::from_nanos(now));
//! # }
//! # assert_eq!((queue, socket, feedback.stops()), (32, 68, 1));
//! ```
//!
//! # Invariants
//!
//! - **OVERLOAD-1** No type here reads a clock, calls the system or draws random numbers. The
//!   caller passes the time, and the same calls have the same results.
//! - **OVERLOAD-2** Receiving never stops forever: each stop ends at an instant that is known at
//!   its start ([`Feedback::until`], [`CoreShare::until`]). A thread that sleeps during a stop
//!   sleeps until then at most.

#![forbid(unsafe_code)]

mod feedback;
mod quota;
mod share;

pub use apus_proto::Instant;
pub use feedback::Feedback;
pub use quota::{Budget, Quotas, RoundRobin, Work};
pub use share::CoreShare;
