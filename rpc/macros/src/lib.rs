//! The attribute `service`, which turns a trait into a service: a client, and a handler for
//! servers.
//!
//! Applications reach it as `apus_rpc::service`; the generated code uses the crate `apus-rpc`
//! (`crate = path` names another place). The code of services inside `apus` would bring serde and
//! all layers above it into the transport.

mod blocking;
mod check;
mod expand;
mod methods;
mod model;
mod options;
mod setters;

use proc_macro::TokenStream;

/// Turns a trait into a service.
///
/// ```ignore
/// #[apus_rpc::service]
/// pub trait Store {
///     /// Returns a value.
///     #[idempotent]
///     async fn get(&self, key: String) -> Option<Vec<u8>>;
///     /// Stores a value.
///     async fn put(&self, key: String, value: Vec<u8>) -> Result<(), StoreError>;
///     /// Sends all changes from now on.
///     async fn watch(&self, prefix: String) -> Streaming<Change>;
/// }
/// ```
///
/// The trait remains, for servers to implement; its methods may be written as `async fn`. The
/// attribute adds
///
/// - `StoreClient`, with the methods of the trait. A method that returns `T` returns
///   `Result<T, Status>` at the client; a method that returns `Result<T, E>` returns
///   `Result<T, ServiceError<E>>`. `StoreClient::new` takes a `Channel`, or layers around a
///   channel.
/// - `StoreBlockingClient`, with all methods that have no streams, for threads:
///   `StoreBlockingClient::new` takes a `BlockingChannel`.
/// - `StoreServer`, a handler: `Server::new(endpoint).add_service(StoreServer::new(store))`.
///
/// Arguments and results are owned types that implement serde's traits. `Streaming<T>` as the last
/// argument, as the result, or as the `T` of a `Result` is a stream. A `#[notify]` method has no
/// result: its client returns once the request is sent, and `StoreClient::notifications` counts the
/// outcomes. `#[idempotent]` declares that executing a request twice is harmless, so that it may
/// be retried and hedged.
///
/// # Options
///
/// `#[apus_rpc::service(name = "shop.Store")]` sets the name of the service; the default is the
/// name of the trait. `codec = apus_rpc::Json` sets the format of arguments and results; the
/// default is postcard. `crate = path` sets the path of the crate `apus-rpc`; the default is
/// `::apus_rpc`.
///
/// # How a service may change
///
/// Methods may be added; calls to a method missing at the server fail with `UNIMPLEMENTED`, not
/// executed. The arguments and results of a method must not change: with postcard, any change to
/// one of their types, even to a nested field or variant, makes calls fail with
/// `FAILED_PRECONDITION`, not executed. Add a new method for new types. `docs/rpc/services.md` in
/// the repository lists the rules.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = options::ServiceOptions::parse(options.into())
        .and_then(|options| Ok((options, check::parse_trait(item.into())?)))
        .and_then(|(options, item)| Ok(expand::expand(&model::Service::new(options, item)?)));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
