"""Documents, questions and rules of the user's, read from files, the Hub, frames and objects of other libraries."""
