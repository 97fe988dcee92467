//! Where do the nodes of a cluster run?

use std::ffi::OsString;
use std::net::IpAddr;

use super::options::Options;
use crate::error::Error;
use crate::fabric::{Fabric, PortCounters, Spec};
use crate::process::Host;

/// The places for the nodes of one run, made for it.
pub(super) struct Site {
    places: Vec<Place>,
    fabric: Option<Fabric>,
}

/// Where one node runs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its name in messages, like `h3`.
    pub(super) name: String,
    /// The address at which the others reach it.
    pub(super) address: IpAddr,
    /// How a process is started there.
    pub(super) host: Host,
}

impl Site {
    /// Makes a fabric whose links have that rate.
    pub(super) fn open(options: &Options, mbps: u64) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(|source| Error::System {
            doing: "find this program's file".to_owned(),
            source,
        })?;
        let spec = Spec { link: super::rate(mbps), ..options.fabric.clone() };
        let fabric = Fabric::up(&spec)?;
        let place = |node| Place {
            name: format!("h{}", node + 1),
            address: fabric.address(node).into(),
            host: Host::Command { prefix: fabric.enter(node), program: OsString::from(&program) },
        };
        Ok(Self { places: (0..spec.nodes).map(place).collect(), fabric: Some(fabric) })
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// What the switch counts, if it is ours.
    pub(super) fn counters(&self) -> Result<Option<Vec<PortCounters>>, Error> {
        self.fabric.as_ref().map(Fabric::counters).transpose()
    }
}
