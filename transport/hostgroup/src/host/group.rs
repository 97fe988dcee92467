//! Groups of transports that share a link, in all processes of a host.

use super::line::PAGE;
use apus_local::{Membership, PeerName, PeerPolicy, SharedPage};
use apus_process::PerProcess;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A group that this process belongs to, until the last reference is dropped.
#[derive(Debug)]
pub struct HostGroup {
    name: PeerName,
    membership: Membership,
}

/// The groups of this process: a child of a fork does not have the threads of its parent's
/// memberships.
static GROUPS: PerProcess<Mutex<Vec<Weak<HostGroup>>>> = PerProcess::new(Mutex::default);

impl HostGroup {
    /// Returns the group with this name, open to the processes of the network namespace that
    /// `policy` allows. With the policy [`PeerPolicy::SameUser`] each user has separate groups.
    ///
    /// # Errors
    ///
    /// The system grants no thread or descriptor, or the name has more than 80 bytes.
    pub fn join(name: &str, policy: &PeerPolicy) -> io::Result<Arc<Self>> {
        let name = page_name(name, policy);
        let mut groups = GROUPS.get().lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|group| group.strong_count() > 0);
        let is_it = |group: &Arc<Self>| group.name == name;
        if let Some(group) = groups.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(group);
        }
        let membership = Membership::begin(name.clone(), PAGE, policy.clone())?;
        let group = Arc::new(Self { name, membership });
        groups.push(Arc::downgrade(&group));
        Ok(group)
    }

    /// Returns a number that changes with the page.
    pub(super) fn version(&self) -> u64 {
        self.membership.version()
    }

    /// Returns the page, if the process has one.
    pub(super) fn page(&self) -> Option<Arc<SharedPage>> {
        self.membership.page()
    }
}

/// Returns the name of a group's page.
fn page_name(name: &str, policy: &PeerPolicy) -> PeerName {
    match policy {
        PeerPolicy::SameUser => {
            let user = rustix::process::geteuid().as_raw();
            PeerName::of_page(&format!("{user}/{name}"))
        }
        _ => PeerName::of_page(&format!("shared/{name}")),
    }
}
