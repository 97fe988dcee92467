//! One side of Aeron's streams.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, NulError};
use std::net::SocketAddr;

use compare_kit::{Error, Wait};
use rusteron_media_driver::{
    Aeron, AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader,
    AeronSubscription, BackoffIdleStrategy, BusySpinIdleStrategy, Handlers, IdleStrategy,
};

use crate::driver::Driver;

/// The streams of requests.
pub(crate) const REQUESTS: i32 = 1;
/// The streams of replies.
pub(crate) const REPLIES: i32 = 2;

/// Maximum fragments received per call.
const FRAGMENTS: usize = 16;

/// Messages, each with the id of its session.
type Messages = VecDeque<(i32, Vec<u8>)>;

/// Receives messages and creates publications. Fields are dropped in order: the driver last.
pub(crate) struct Side {
    messages: Messages,
    subscription: AeronSubscription,
    assembler: AeronFragmentClosureAssembler,
    idle: Box<dyn IdleStrategy>,
    aeron: Aeron,
    driver: Driver,
}

impl Side {
    /// A side that receives a stream of a channel.
    pub(crate) fn open(
        driver: Driver,
        from: &CStr,
        stream: i32,
        wait: Wait,
    ) -> Result<Self, Error> {
        let aeron = driver.connect()?;
        let adding = aeron.async_add_subscription(from, stream, Handlers::NONE, Handlers::NONE)?;
        let subscription = driver.until(|| adding.poll())?;
        let idle: Box<dyn IdleStrategy> = match wait {
            Wait::Spin => Box::new(BusySpinIdleStrategy),
            Wait::Block => Box::new(BackoffIdleStrategy::new()),
        };
        let assembler = AeronFragmentClosureAssembler::new()?;
        Ok(Self { messages: VecDeque::new(), subscription, assembler, idle, aeron, driver })
    }

    /// Adds a publication.
    pub(crate) fn publish(
        &self,
        to: &CStr,
        stream: i32,
    ) -> Result<AeronExclusivePublication, Error> {
        let adding = self.aeron.async_add_exclusive_publication(to, stream)?;
        self.driver.until(|| adding.poll())
    }

    /// Returns the number of sessions that this side receives.
    pub(crate) fn sessions(&self) -> Result<usize, Error> {
        Ok(self.subscription.image_count()?.try_into()?)
    }

    /// Sends a message as soon as the publication accepts it; gives up once `is_over` returns true.
    pub(crate) fn send(
        &self,
        to: &AeronExclusivePublication,
        message: &[u8],
        is_over: impl Fn() -> bool,
    ) -> Result<(), Error> {
        while !offer(to, message)? && !is_over() {
            self.driver.work()?;
        }
        Ok(())
    }

    /// Returns the next message, and the id of its session. Without a message, idles if permitted,
    /// and then returns.
    pub(crate) fn receive(&mut self, may_idle: bool) -> Result<Option<(i32, Vec<u8>)>, Error> {
        if self.messages.is_empty() {
            let add = |messages: &mut Messages, message: &[u8], header: AeronHeader| {
                if let Ok(values) = header.get_values() {
                    messages.push_back((values.frame().session_id(), message.to_vec()));
                }
            };
            let Self { messages, subscription, assembler, .. } = self;
            let polled = assembler.poll(subscription, messages, add, FRAGMENTS)?;
            let done = polled + self.driver.work()?;
            if may_idle || done > 0 {
                self.idle.idle(done);
            }
        }
        Ok(self.messages.pop_front())
    }
}

/// Sends a message if the publication accepts it, and returns whether it did.
pub(crate) fn offer(to: &AeronExclusivePublication, message: &[u8]) -> Result<bool, Error> {
    match to.offer(message) {
        Ok(_) => Ok(true),
        Err(error) if error.is_retryable() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the channel to an address, or the channel of all processes of a host; `session` is the
/// id of its only session.
pub(crate) fn channel(
    at: SocketAddr,
    is_same_host: bool,
    session: Option<i32>,
) -> Result<CString, NulError> {
    CString::new(match (is_same_host, session) {
        (true, None) => "aeron:ipc".to_owned(),
        (true, Some(id)) => format!("aeron:ipc?session-id={id}"),
        (false, None) => format!("aeron:udp?endpoint={at}"),
        (false, Some(id)) => format!("aeron:udp?endpoint={at}|session-id={id}"),
    })
}
