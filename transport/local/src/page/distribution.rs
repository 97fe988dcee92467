//! Exchange between the distributor of a page and a process that requests it: the page's file,
//! behind one byte.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use apus_process::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::shared_page::SharedPage;
use crate::socket::credentials::{Credentials, PeerPolicy};
use crate::socket::stream;

/// The byte that accompanies the file.
const HERE: [u8; 1] = [1];

/// Processes that one distributor serves. Chosen by us: more than a host runs; a descriptor each.
const MAX_MEMBERS: usize = 256;

/// Connections that are accepted in one round. Chosen by us: as many as
/// [`Listener`](crate::Listener) rejects in one poll.
const ACCEPTS: usize = 8;

/// Time that a distributor has to hand the page out. Chosen by us: a distributor that is stopped
/// must not be waited for.
const DISTRIBUTOR_TIME: Duration = Duration::from_secs(1);

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The membership ends.
    Stopped,
    /// A descriptor is ready, or the time has passed.
    Over,
}

/// Waits until one of `sockets` is readable or closed by its peer, for at most `time` if given, or
/// until `stop` is raised.
pub(super) fn wait<'a>(
    stop: &'a Descriptor,
    sockets: impl IntoIterator<Item = &'a Descriptor>,
    time: Option<Duration>,
) -> Result<Wait, Errno> {
    let events = PollFlags::IN | PollFlags::RDHUP;
    let all = std::iter::once(stop).chain(sockets);
    let mut fds: Vec<_> = all.map(|socket| PollFd::new(socket, events)).collect();
    let time = time.map(|time| Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    match rustix::event::poll(&mut fds, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    Ok(if fds[0].revents().is_empty() { Wait::Over } else { Wait::Stopped })
}

/// Hands `page` out under the name of `listener`, until `stop` is raised.
pub(super) fn distribute(
    stop: &Descriptor,
    listener: &Descriptor,
    page: &SharedPage,
    policy: &PeerPolicy,
) -> Result<(), Errno> {
    let mut members: Vec<Descriptor> = Vec::new();
    loop {
        if wait(stop, std::iter::once(listener).chain(&members), None)? == Wait::Stopped {
            return Ok(());
        }
        // Members send nothing: a readable connection has ended or is faulty.
        members.retain(|member| stream::is_silent(member.as_fd()));
        // The remaining ones are accepted in the next round: a flood of connections cannot hide the
        // end of the membership.
        for _ in 0..ACCEPTS {
            let Some(member) = stream::accept(listener.as_fd())? else { break };
            let may = Credentials::of_peer(&member).is_ok_and(|peer| policy.allows(peer.uid));
            if may
                && members.len() < MAX_MEMBERS
                && stream::send_hello(member.as_fd(), &HERE, Some(page.as_fd())).is_ok()
            {
                members.push(member);
            }
        }
    }
}

/// Waits for the page of `len` bytes that the distributor at the other end of `distributor` hands
/// out. `None` if the membership ends.
///
/// # Errors
///
/// The distributor is of a user that `policy` does not allow, does not answer, or hands out
/// something else.
pub(super) fn receive(
    stop: &Descriptor,
    distributor: Descriptor,
    len: usize,
    policy: &PeerPolicy,
) -> io::Result<Option<(Descriptor, SharedPage)>> {
    if !policy.allows(Credentials::of_peer(&distributor)?.uid) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if wait(stop, [&distributor], Some(DISTRIBUTOR_TIME))? == Wait::Stopped {
        return Ok(None);
    }
    let mut byte = [0];
    let received = stream::recv_hello(distributor.as_fd(), &mut byte)?;
    let Some((1, Some(file))) = received else { return Err(io::ErrorKind::TimedOut.into()) };
    let page = SharedPage::adopt(file, len).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((distributor, page)))
}
