"""The same application, under the other name that it has: ``ironic.wsgi.api:application``."""

from ironic.wsgi import application as application
