//! The client for threads.

use crate::methods::{arguments_type, method_function};
use crate::model::{Method, Service};
use crate::setters::option_setters;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};

/// Returns the client for the methods without streams; `None` if there are no such methods.
pub(crate) fn expand(service: &Service) -> Option<TokenStream> {
    let unary =
        |method: &&Method| method.stream.is_none() && !method.result.is_stream && !method.notify;
    let methods: Vec<_> = service.methods.iter().filter(unary).collect();
    if methods.is_empty() {
        return None;
    }
    let krate = &service.krate;
    let (the_trait, visibility) = (&service.item.ident, &service.item.vis);
    let client = format_ident!("{the_trait}BlockingClient");
    let summary = format!("Client of [`{the_trait}`] for threads: its methods without streams.");
    let methods = methods.into_iter().map(|method| expand_method(service, method));
    let setters = option_setters(service);
    Some(quote! {
        #[doc = #summary]
        ///
        /// Clones are cheap, and any number of threads may call at the same time.
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "an application may use a part of what is generated")]
        #visibility struct #client {
            channel: #krate::BlockingChannel,
            options: #krate::typed::ClientOptions,
        }

        #[allow(dead_code, reason = "an application may use a part of what is generated")]
        impl #client {
            /// Returns a client that sends its calls through `channel`.
            #visibility fn new(channel: #krate::BlockingChannel) -> Self {
                Self { channel, options: ::core::default::Default::default() }
            }

            #setters

            #(#methods)*
        }
    })
}

fn expand_method(service: &Service, method: &Method) -> TokenStream {
    let (krate, codec, visibility) = (&service.krate, &service.codec, &service.item.vis);
    let (name, docs) = (&method.ident, &method.docs);
    let method_fn = method_function(service, method);
    let parameters = method.arguments.iter().map(|(name, of)| quote!(#name: #of));
    let names = method.arguments.iter().map(|(name, _)| name);
    let (arguments, value) = (arguments_type(method), &method.result.value);
    let (failure, read) = match &method.result.error {
        Some(error) => (
            quote!(#krate::ServiceError<#error>),
            quote!(result_or_error::<#codec, #value, #error>),
        ),
        None => (quote!(#krate::Status), quote!(result::<#codec, #value>)),
    };
    quote_spanned! {method.span=>
        #(#docs)*
        ///
        /// # Errors
        ///
        /// The method's own error, if it has one, or the status of a failed call. `execution`
        /// returns whether it may have been executed.
        #visibility fn #name(&self, #(#parameters,)*) -> ::core::result::Result<#value, #failure> {
            let request = #krate::typed::request::<#codec, #arguments>(
                &self.options, #method_fn(), &(#(#names,)*),
            )?;
            let response = self.channel.call(request)?;
            #krate::typed::blocking::#read(response)
        }
    }
}
