"""The one async loop: ask the model, run the calls it makes, close the history, ask again."""
