//! Requests that the application answers, in addition to the requests of this crate.

use crate::introspection::response::Response;
use apus_process::PerProcess;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Respond = dyn Fn() -> Response + Send + Sync;

/// A request that the application answers.
#[derive(Clone)]
struct Topic {
    name: &'static str,
    about: &'static str,
    respond: Arc<Respond>,
}

static TOPICS: PerProcess<Mutex<Vec<Topic>>> = PerProcess::new(Mutex::default);

fn topics() -> MutexGuard<'static, Vec<Topic>> {
    TOPICS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that the application answers until this is dropped. A child of a fork answers only
/// what it has published.
#[must_use = "dropped, the request is unknown again"]
pub struct Published(Arc<Respond>);

/// Has this process respond to the request `name`, as long as it has an observable endpoint. Other
/// processes send it with [`Process::request`](crate::introspection::Process::request), and the
/// request `help` describes the response with `about`.
///
/// `respond` runs in the thread that responds to requests, one at a time. It returns the response
/// or the reason for a refusal, and must not wait for long: its clients wait for 5 s at most.
pub fn publish(
    name: &'static str,
    about: &'static str,
    respond: impl Fn() -> Result<Vec<u8>, String> + Send + Sync + 'static,
) -> Published {
    let respond: Arc<Respond> = Arc::new(respond);
    topics().push(Topic { name, about, respond: respond.clone() });
    Published(respond)
}

impl Drop for Published {
    fn drop(&mut self) {
        topics().retain(|topic| !Arc::ptr_eq(&topic.respond, &self.0));
    }
}

impl std::fmt::Debug for Published {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Published").finish_non_exhaustive()
    }
}

/// Responds to a request of the application; `None` if there is no such request.
pub(crate) fn respond(name: &str) -> Option<Response> {
    let found = topics().iter().find(|topic| topic.name == name).map(|topic| topic.respond.clone());
    // Called without the lock: the application may publish more.
    found.map(|respond| respond())
}

/// Returns name and description of each request of the application.
pub(crate) fn descriptions() -> Vec<(&'static str, &'static str)> {
    topics().iter().map(|topic| (topic.name, topic.about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_answered_until_it_is_dropped() {
        let published = publish("test topic", "a test", || Ok(b"hello".to_vec()));
        assert_eq!(respond("test topic"), Some(Ok(b"hello".to_vec())));
        assert!(descriptions().contains(&("test topic", "a test")));
        drop(published);
        assert_eq!(respond("test topic"), None);
    }
}
