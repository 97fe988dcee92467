//! The attribute `service`, which makes a service of a trait: a client, and a handler for servers.
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

/// Makes a service of a trait.
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
/// The trait is kept, for servers to implement; its methods may be written as `async fn`. The
/// attribute adds
///
/// - `StoreClient`, with the methods of the trait. A method that returns `T` returns `Result<T, Status>` at the client; one
///   that returns `Result<T, E>` returns `Result<T, ServiceError<E>>`. `StoreClient::new` takes a `Channel`, or layers
///   around one.
/// - `StoreBlockingClient`, with the methods without streams, for threads:
///   `StoreBlockingClient::new` takes a `BlockingChannel`.
/// - `StoreServer`, a handler: `Server::new(endpoint).add_service(StoreServer::new(store))`.
///
/// Arguments and results are owned types with serde's traits. `Streaming<T>` as the last argument,
/// as the result, or as the `T` of a `Result` is a stream. A `#[notify]` method has no result: its
/// client returns when the request is sent, and `StoreClient::notifications` counts the outcomes.
/// `#[idempotent]` declares that executing a request twice is harmless, so that it may be retried
/// and hedged.
///
/// # Options
///
/// `#[apus_rpc::service(name = "shop.Store")]` sets the name of the service, which is otherwise that of the trait;
/// `codec = apus_rpc::Json` the format of arguments and results, which is otherwise postcard; `crate = path` where the crate
/// `apus-rpc` is, which is otherwise `::apus_rpc`.
///
/// # How a service may change
///
/// Methods may be added; calls of a method that the server lacks fail with `UNIMPLEMENTED`, not
/// executed. The arguments and results of a method must not change: with postcard, a change of one
/// of their types, even of a nested field or variant, makes calls fail with `FAILED_PRECONDITION`,
/// not executed. Add a new method for other types. `docs/rpc/services.md` in the repository has the
/// rules.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = options::ServiceOptions::parse(options.into())
        .and_then(|options| Ok((options, check::parse_trait(item.into())?)))
        .and_then(|(options, item)| Ok(expand::expand(&model::Service::new(options, item)?)));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
