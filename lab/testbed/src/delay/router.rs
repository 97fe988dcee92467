//! The delay program: forwards the packets of two interfaces.

use std::num::NonZero;
use std::os::fd::OwnedFd;

use apus_report::stats::Latencies;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::Deserialize;
use serde_json::{Value, json};

use super::checksum::complete;
use super::line::DelayLine;
use super::report::DelayReport;
use crate::fabric::RouterPath;
use crate::packet_socket::{self, Use};
use apus_measure::clock;
use apus_measure::error::{Doing, Error};
use apus_measure::process::{Control, NO_ADDRESS, Task};

/// Maximum number of packets read from an interface before sending resumes.
const BURST: usize = 32;
/// Maximum sleep in nanoseconds between checks of the stop request.
const LONGEST_SLEEP: u64 = 50_000_000;
/// Buffer for received but unread packets, in bytes. Chosen by us: 10 ms at 10 Gbit/s.
const BUFFER: usize = 16 << 20;
/// Scheduling priority, setpriority(2): the delay must not depend on how much the hosts compute.
const PRIORITY: i32 = -15;

#[derive(Deserialize)]
struct Setup {
    one_way_ns: u64,
}

/// One direction: from an interface, through the delay line, to the other interface.
struct Direction {
    input: OwnedFd,
    output: OwnedFd,
    line: DelayLine,
}

/// Forwards packets until it is stopped; reports a [`DelayReport`].
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let setup: Setup = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected setup: {error}")))?;
    // Without the privilege, packets leave later, and the report shows it.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    let _ = rustix::thread::set_current_timer_slack(NonZero::new(1));
    let mut directions = [
        Direction::open(RouterPath::IN, RouterPath::OUT, setup.one_way_ns)?,
        Direction::open(RouterPath::OUT, RouterPath::IN, setup.one_way_ns)?,
    ];
    control.ready(NO_ADDRESS)?;
    let (mut report, mut late) = (DelayReport::default(), Latencies::new());
    let mut room = vec![0; 1 << 16];
    while !control.stop().is_asked() {
        let mut taken = false;
        for direction in &mut directions {
            taken |= direction.take(&mut room)?;
            direction.send(&mut report, &mut late)?;
        }
        if !taken {
            sleep(&directions)?;
        }
    }
    report.late_p50_us = late.quantile(0.5) as f64 / 1e3;
    report.late_p99_us = late.quantile(0.99) as f64 / 1e3;
    Ok(json!(report))
}

/// Sleeps until a packet arrives or is due.
fn sleep(directions: &[Direction; 2]) -> Result<(), Error> {
    let due = directions.iter().filter_map(|direction| direction.line.due()).min();
    let now = clock::now();
    let time = due.map_or(LONGEST_SLEEP, |due| due.saturating_sub(now)).min(LONGEST_SLEEP);
    let time = Timespec { tv_sec: 0, tv_nsec: time.cast_signed() };
    let mut inputs =
        directions.each_ref().map(|direction| PollFd::new(&direction.input, PollFlags::IN));
    match poll(&mut inputs, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).doing(|| "wait for a packet".to_owned()),
    }
}

impl Direction {
    fn open(from: &str, to: &str, delay: u64) -> Result<Self, Error> {
        let input = packet_socket::open(from, Use::Receive)?;
        // Refused in a user namespace: bursts of packets may then be lost.
        let _ = set_socket_recv_buffer_size_force(&input, BUFFER);
        let output = packet_socket::open(to, Use::Send)?;
        Ok(Self { input, output, line: DelayLine::new(delay) })
    }

    /// Reads received packets; returns whether any were available.
    fn take(&mut self, room: &mut [u8]) -> Result<bool, Error> {
        for count in 0..BURST {
            match recv(&self.input, &mut *room, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    let frame = &mut room[..length];
                    complete(frame);
                    self.line.push(clock::now(), frame);
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(count > 0),
                Err(error) => return Err(error).doing(|| "receive a packet".to_owned()),
            }
        }
        Ok(true)
    }

    /// Sends due packets.
    fn send(&mut self, report: &mut DelayReport, late: &mut Latencies) -> Result<(), Error> {
        while let Some((lateness, packet)) = self.line.pop(clock::now()) {
            late.record(lateness);
            match send(&self.output, &packet, SendFlags::DONTWAIT) {
                Ok(_) => report.packets += 1,
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::MSGSIZE) => {
                    report.dropped += 1;
                }
                Err(error) => return Err(error).doing(|| "send a packet".to_owned()),
            }
            self.line.recycle(packet);
        }
        Ok(())
    }
}
