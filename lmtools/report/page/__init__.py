"""Tables, drawings and the HTML page, whatever they show."""
