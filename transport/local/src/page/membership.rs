//! A process's part in the sharing of a page: the thread that distributes it, or waits for the
//! distributor's end.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use apus_process::{Descriptor, Owner};
use rustix::event::EventfdFlags;

use super::distribution::{self, Wait};
use super::shared_page::SharedPage;
use crate::socket::credentials::PeerPolicy;
use crate::socket::peer_name::PeerName;
use crate::socket::stream;
use crate::sync::{AtomicU64, Ordering};

/// Time after a refusal until the process requests the page again. Chosen by us: the name may
/// belong to another user for long, and an attempt costs three system calls.
const RETRY: Duration = Duration::from_secs(1);

/// Pause after the end of a distributor. Chosen by us: too short to be missed, and a distributor
/// that hangs up on all its members cannot keep them busy.
const PAUSE: Duration = Duration::from_millis(10);

/// A process's part in the sharing of a page, until this is dropped.
#[derive(Debug)]
pub struct Membership {
    shared: Arc<MembershipState>,
    thread: Option<JoinHandle<()>>,
    owner: Owner,
}

/// State shared between the thread and the users of the page.
#[derive(Debug)]
struct MembershipState {
    name: PeerName,
    len: usize,
    policy: PeerPolicy,
    page: Mutex<Option<Arc<SharedPage>>>,
    /// Number of pages that the process has had. Written under the lock of `page`.
    version: AtomicU64,
    /// Raised once, when the membership ends.
    stop: Descriptor,
}

impl Membership {
    /// Starts to share the page of `len` bytes with this name with the processes that `policy`
    /// allows, which must call this with the same length. [`Membership::page`] returns the page
    /// when it has arrived.
    ///
    /// # Errors
    ///
    /// The system grants no thread or descriptor, or the name is too long.
    pub fn begin(name: PeerName, len: usize, policy: PeerPolicy) -> io::Result<Self> {
        name.address().map_err(io::Error::other)?;
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stop = Descriptor::new(stop);
        let (page, version) = (Mutex::default(), AtomicU64::new(0));
        let shared = Arc::new(MembershipState { name, len, policy, page, version, stop });
        let thread = std::thread::Builder::new().name("apus-page".into()).spawn({
            let shared = shared.clone();
            move || shared.run()
        })?;
        Ok(Self { shared, thread: Some(thread), owner: Owner::current() })
    }

    /// Returns a number that changes with the page.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Returns the page. `None` if the process has none yet: it has just started, or the owner of
    /// the name hands out none.
    #[must_use]
    pub fn page(&self) -> Option<Arc<SharedPage>> {
        self.shared.page().clone()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            // A child of a fork has no such thread: it can neither end it nor detach it.
            std::mem::forget(self.thread.take());
            return;
        }
        // Fails only if it has been raised 2^64 - 2 times before.
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        // If the thread panicked, the panic has been printed already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl MembershipState {
    fn page(&self) -> MutexGuard<'_, Option<Arc<SharedPage>>> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_page(&self, new: SharedPage) -> Arc<SharedPage> {
        let new = Arc::new(new);
        *self.page() = Some(new.clone());
        self.version.fetch_add(1, Ordering::Release);
        new
    }

    fn run(&self) {
        loop {
            let ended = match stream::listen(&self.name) {
                Ok(listener) => self.distribute(&listener),
                Err(_) => self.follow(),
            };
            let pause = match ended {
                Ok(Wait::Stopped) => return,
                // The distributor has gone: the first one to listen is the next.
                Ok(Wait::Over) => PAUSE,
                // The owner of the name does not share with this process, or the system is short of
                // a resource.
                Err(_) => RETRY,
            };
            if !matches!(distribution::wait(&self.stop, [], Some(pause)), Ok(Wait::Over)) {
                return;
            }
        }
    }

    /// Distributes the page until the membership ends.
    fn distribute(&self, listener: &Descriptor) -> io::Result<Wait> {
        let known = self.page().clone();
        let page = match known {
            Some(page) => page,
            None => self.set_page(SharedPage::create(self.len)?),
        };
        distribution::distribute(&self.stop, listener, &page, &self.policy)?;
        Ok(Wait::Stopped)
    }

    /// Gets the page from its distributor, and waits until the distributor has gone or the
    /// membership ends.
    fn follow(&self) -> io::Result<Wait> {
        let distributor = stream::connect(&self.name).map_err(io::Error::other)?;
        let received = distribution::receive(&self.stop, distributor, self.len, &self.policy)?;
        let Some((distributor, page)) = received else { return Ok(Wait::Stopped) };
        let is_known = self.page().as_ref().is_some_and(|known| is_one_file(known, &page));
        if !is_known {
            self.set_page(page);
        }
        // The distributor sends nothing further.
        Ok(distribution::wait(&self.stop, [&distributor], None)?)
    }
}

/// Returns whether two pages are one file.
fn is_one_file(one: &SharedPage, other: &SharedPage) -> bool {
    let id =
        |page: &SharedPage| rustix::fs::fstat(page.as_fd()).map(|stat| (stat.st_dev, stat.st_ino));
    id(one).is_ok_and(|one| id(other) == Ok(one))
}
