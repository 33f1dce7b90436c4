"""What a user brings becomes a Subject: one file per kind of model. `_adapter` says what each gives."""
