//! Sealed packets: every packet of an endpoint encrypted and authenticated, with keys from TLS 1.3
//! handshakes.
//!
//! An endpoint is sealed or clear; the two do not understand each other, and there is no
//! negotiation that an attacker could win. `EndpointBuilder::security` seals one; it exists with
//! the feature `tls-ring` or `tls-aws-lc`. `docs/security.md` of the repository lists what is
//! hidden and what is not.

#[cfg(feature = "tls")]
pub use apus_seal::tls::{
    Admission, Credentials, CredentialsError, Plaintext, Security, SecurityMode, SecuritySettings,
    certificate_validity, certificates_in, check_permissions, crypto_provider,
    describe_certificate, fingerprint_of, log_keys, pem_certificates,
};
#[cfg(feature = "tls")]
pub use apus_seal::{Failure, FoundBy, HandshakeError, Identity, IdentityKind};

#[cfg(feature = "tls")]
pub(crate) use sealed::{Sealer, Sealing};

#[cfg(not(feature = "tls"))]
pub(crate) use clear::{Sealer, Sealing};

#[cfg(feature = "tls")]
mod sealed {
    //! The sealing half of an endpoint, with the feature.

    use crate::error::BindError;
    use crate::warning;
    use apus_driver::Driver;
    use apus_driver::seal::{SealHandle, Sealed, WATCH_INTERVAL, Watch};
    use apus_proto::Config;
    use apus_seal::tls::Security;
    use apus_seal::{HandshakeError, Identity, Limits};
    use std::net::SocketAddr;
    use std::sync::Arc;

    /// How the packets of an endpoint are sealed, if they are.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Sealer(pub(crate) Option<Security>);

    impl Sealer {
        /// Returns whether calls may go through shared memory.
        pub(crate) fn allows_memory(&self) -> bool {
            self.0.as_ref().is_none_or(Security::allows_memory)
        }

        /// Seals the packets of `driver`. Handshake packets leave at the level of control packets
        /// of `config`.
        ///
        /// # Errors
        ///
        /// [`BindError::Security`].
        pub(crate) fn seal(
            &self,
            driver: Box<dyn Driver>,
            config: &Config,
        ) -> Result<(Box<dyn Driver>, Sealing), BindError> {
            let Some(security) = &self.0 else { return Ok((driver, Sealing::default())) };
            let negotiator = security.negotiator()?;
            let address = driver.local_addr();
            let sealed = Sealed::new(driver, negotiator, Limits::default())
                .with_traffic_class(control_class(config));
            let handle = sealed.handle();
            let (security, mut stamp) = (security.clone(), security.stamp());
            let reload = move || {
                let read = security.reload(&mut stamp)?;
                Some(read.map_err(|error| format!("the keys in use are kept: {error}")))
            };
            let warn = |text: &str| warning::print(format_args!("{text}"));
            let watch = Watch::start(handle.clone(), WATCH_INTERVAL, reload, warn);
            let watch = watch.map_err(|source| BindError::Start { address, source })?;
            Ok((Box::new(sealed), Sealing(Some((handle, watch)))))
        }
    }

    /// Returns the traffic class of control packets (PRIO-5, PRIO-10).
    fn control_class(config: &Config) -> u8 {
        config.priority_map()[usize::from(config.highest_priority())] << 5
    }

    /// A sealed endpoint's information about its peers.
    #[derive(Debug, Default)]
    pub(crate) struct Sealing(Option<(Arc<SealHandle>, Watch)>);

    impl Sealing {
        /// Returns the identity that `peer` has shown for `session`.
        pub(crate) fn identity(&self, peer: SocketAddr, session: u64) -> Option<Arc<Identity>> {
            let (handle, _) = self.0.as_ref()?;
            handle.identity(peer, session)
        }

        /// Returns why there are no keys with `peer`.
        pub(crate) fn failure(&self, peer: SocketAddr) -> Option<HandshakeError> {
            let (handle, _) = self.0.as_ref()?;
            handle.failure(peer)
        }

        /// Returns whether packets are sealed.
        pub(crate) const fn is_sealed(&self) -> bool {
            self.0.is_some()
        }
    }
}

#[cfg(not(feature = "tls"))]
mod clear {
    //! Replaces sealing, without the feature.

    use crate::error::BindError;
    use apus_driver::Driver;
    use apus_proto::Config;

    /// Packets leave as they are.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Sealer {}

    impl Sealer {
        /// Returns whether calls may go through shared memory.
        pub(crate) const fn allows_memory(&self) -> bool {
            true
        }

        /// Returns `driver`.
        #[allow(clippy::unnecessary_wraps)] // as with the feature
        pub(crate) fn seal(
            &self,
            driver: Box<dyn Driver>,
            _config: &Config,
        ) -> Result<(Box<dyn Driver>, Sealing), BindError> {
            Ok((driver, Sealing {}))
        }
    }

    /// No information about peers.
    #[derive(Debug, Default)]
    pub(crate) struct Sealing {}
}
